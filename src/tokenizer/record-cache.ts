/**
 * A folder of records that may go away at any time: large arrays with a small JSON header, one file each, by a key that
 * stands for all they were made of. Whatever is wrong with a file or the folder, a record is just not there.
 */
import { fileModules } from "./file-modules"

type Modules = NonNullable<ReturnType<typeof fileModules>>

/**
 * What a file begins with; then the header's length and SHA-256, the header, and the arrays one behind the other. Against
 * accidents alone: arrays have a CRC-32 each, which is five times faster.
 */
const magic = "sluice record 1\n"
const preambleBytes = 64
const lengthAt = 16
const digestAt = 32

const utf8 = new TextEncoder()

const recordName = /^[0-9a-f]{64}\.record$/
const unfinishedName = /^[0-9a-f]{64}\.[0-9a-f-]{36}\.unfinished$/
/** A file that someone still writes is younger. */
const unfinishedMsMax = 3_600_000

/** How much the folder may hold: more, and the files written first go. The largest vocabularies take 55 MB. */
export interface CacheLimits {
  readonly filesMax: number
  readonly bytesMax: number
  /** Of one file; larger ones are neither written nor read. */
  readonly fileBytesMax: number
}

const usualLimits: CacheLimits = {
  filesMax: 16,
  bytesMax: 512 * 1024 * 1024,
  fileBytesMax: 192 * 1024 * 1024,
}

/** The header as it is written. */
interface Header {
  readonly key: string
  readonly facts: unknown
  /** Length and CRC-32 of each array. */
  readonly arrays: readonly (readonly [bytes: number, crc: number])[]
}

/** The file ends too early, or its header is none. */
class Broken extends Error {}

/** The cache in one folder. */
export class RecordCache {
  private readonly modules: Modules
  private readonly folder: string
  private readonly limits: CacheLimits

  private constructor(modules: Modules, folder: string, limits: CacheLimits) {
    this.modules = modules
    this.folder = folder
    this.limits = limits
  }

  /** The cache in a folder, which need not be there; null where there are no files. */
  static in(folder: string, limits: CacheLimits = usualLimits): RecordCache | null {
    const modules = fileModules()
    return modules === null ? null : new RecordCache(modules, folder, limits)
  }

  /** The key of what is made of these sources alone: their SHA-256, in hex. */
  keyOf(sources: readonly (string | Uint8Array)[]): string {
    const digest = this.modules.crypto.createHash("sha256")
    for (const source of sources) {
      const bytes = typeof source === "string" ? utf8.encode(source) : source
      digest.update(`${bytes.length}\n`).update(bytes)
    }
    return digest.digest("hex")
  }

  /**
   * Reads a record: `place` is given its facts, and says where the bytes of its arrays go. Null: there is none, or none
   * that is whole; bytes may have been written then.
   */
  read<Place extends { readonly arrays: readonly Uint8Array[] }>(
    key: string,
    place: (facts: unknown) => Place,
  ): Place | null {
    const { files, paths } = this.modules
    let file = -1
    try {
      file = files.openSync(paths.join(this.folder, `${key}.record`), "r")
      const { size, uid } = files.fstatSync(file)
      // In a folder that others can write to, they decide about their own ids only.
      const user = process.geteuid?.() ?? uid
      if ((uid !== user && uid !== 0) || size > this.limits.fileBytesMax) return null
      const header = this.readHeader(file, size)
      if (header.key !== key) return null
      const placed = place(header.facts)
      if (placed.arrays.length !== header.arrays.length) return null
      for (const [i, [bytes, crc]] of header.arrays.entries()) {
        const array = placed.arrays[i]!
        if (array.length !== bytes) return null
        this.fill(file, array)
        if (this.modules.crc32(array) !== crc) return null
      }
      return placed
    } catch {
      // No file, no permission, no memory, no JSON: without a cache all goes on as well, only slower.
      return null
    } finally {
      if (file >= 0) this.quietly(() => files.closeSync(file))
    }
  }

  /** Writes a record, if it can. Readers see all of it or nothing. */
  write(key: string, facts: unknown, arrays: readonly Uint8Array[]): void {
    const { files, paths, crypto, crc32 } = this.modules
    const header: Header = { key, facts, arrays: arrays.map((array) => [array.length, crc32(array)]) }
    const headerBytes = utf8.encode(JSON.stringify(header))
    if (fileBytes(headerBytes.length, header) > this.limits.fileBytesMax) return
    const unfinished = paths.join(this.folder, `${key}.${crypto.randomUUID()}.unfinished`)
    let file = -1
    try {
      files.mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      file = files.openSync(unfinished, "wx", 0o600)
      for (const part of [this.preamble(headerBytes), headerBytes, ...arrays]) {
        for (let at = 0; at < part.length; ) at += files.writeSync(file, part, at, part.length - at)
      }
      files.closeSync(file)
      file = -1
      files.renameSync(unfinished, paths.join(this.folder, `${key}.record`))
      this.prune(`${key}.record`)
    } catch {
      // No room or no permission: the next one who loads builds again.
      if (file >= 0) this.quietly(() => files.closeSync(file))
      this.quietly(() => files.rmSync(unfinished, { force: true }))
    }
  }

  private preamble(header: Uint8Array): Uint8Array {
    const preamble = new Uint8Array(preambleBytes)
    utf8.encodeInto(magic, preamble)
    new DataView(preamble.buffer).setUint32(lengthAt, header.length, true)
    preamble.set(this.modules.crypto.createHash("sha256").update(header).digest(), digestAt)
    return preamble
  }

  private readHeader(file: number, size: number): Header {
    const preamble = new Uint8Array(preambleBytes)
    this.fill(file, preamble)
    const length = new DataView(preamble.buffer).getUint32(lengthAt, true)
    if (preambleBytes + length > size) throw new Broken()
    const bytes = new Uint8Array(length)
    this.fill(file, bytes)
    // What the first bytes have to be for this header: magic, length and digest at once.
    if (this.preamble(bytes).some((byte, i) => byte !== preamble[i])) throw new Broken()
    // As it was written: the digest is right, and other forms have another magic.
    const header = JSON.parse(new TextDecoder().decode(bytes)) as Header
    if (fileBytes(length, header) !== size) throw new Broken()
    return header
  }

  private fill(file: number, into: Uint8Array): void {
    for (let at = 0; at < into.length; ) {
      const count = this.modules.files.readSync(file, into, at, into.length - at, null)
      if (count === 0) throw new Broken()
      at += count
    }
  }

  /** Removes what is beyond the limits, oldest first, but not `kept`; and what writers left that died. */
  private prune(kept: string): void {
    const { files, paths } = this.modules
    const found: { path: string; size: number; writtenMs: number }[] = []
    let bytes = 0
    for (const name of files.readdirSync(this.folder)) {
      const path = paths.join(this.folder, name)
      if (!recordName.test(name) && !unfinishedName.test(name)) continue
      // Others may remove them at the same time.
      const status = files.statSync(path, { throwIfNoEntry: false })
      if (status === undefined) continue
      if (unfinishedName.test(name)) {
        if (Date.now() - status.mtimeMs > unfinishedMsMax) this.quietly(() => files.rmSync(path, { force: true }))
        continue
      }
      bytes += status.size
      if (name !== kept) found.push({ path, size: status.size, writtenMs: status.mtimeMs })
    }
    found.sort((a, b) => a.writtenMs - b.writtenMs)
    let count = found.length + 1
    for (const { path, size } of found) {
      if (count <= this.limits.filesMax && bytes <= this.limits.bytesMax) break
      this.quietly(() => files.rmSync(path, { force: true }))
      count -= 1
      bytes -= size
    }
  }

  private quietly(act: () => void): void {
    try {
      act()
    } catch {
      // Nothing depends on it.
    }
  }
}

function fileBytes(headerBytes: number, { arrays }: Header): number {
  return arrays.reduce((sum, [bytes]) => sum + bytes, preambleBytes + headerBytes)
}
