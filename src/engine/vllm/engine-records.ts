import { closeSync, fstatSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type EngineFacts, factsOf, registrationOf } from "./engine-facts"

/** What one process of this server leaves to the next about an engine. */
export interface EngineRecord {
  readonly facts: EngineFacts
  /** Names of the model that it was taken to compute: as the operator wrote it, and its folder. */
  readonly modelNames: readonly string[]
  readonly vocabSize: number
  /** It steps together with others. */
  readonly isCoordinated: boolean
}

/** Which engine: where it reads its requests, and its rank. */
export interface RecordedPlace {
  readonly address: string
  readonly rank: number
}

const form = 1
/** A record has some hundred bytes. */
const fileBytesMax = 65_536

/**
 * A folder of what engines said when they registered, one small file for each address and rank: they say it once in
 * their life, and may outlive this process. Whatever is wrong with a file or the folder, there is just no record.
 */
export class EngineRecords {
  private readonly folder: string | null

  /** null = nothing is kept. */
  constructor(folder: string | null) {
    this.folder = folder
  }

  /** The record of a place; null = there is none, or none that can be trusted. */
  read(place: RecordedPlace): EngineRecord | null {
    if (this.folder === null) return null
    let file = -1
    try {
      file = openSync(this.path(this.folder, place), "r")
      const { size, uid } = fstatSync(file)
      const user = process.geteuid?.() ?? uid
      if ((uid !== user && uid !== 0) || size > fileBytesMax) return null
      return recordOf(JSON.parse(readFileSync(file, "utf8")), place)
    } catch {
      // No file, no permission, no JSON: the engine is asked, or the model's own limits hold.
      return null
    } finally {
      if (file >= 0) closeSync(file)
    }
  }

  /** Keeps the record of a place in place of the one before; readers see all of it or nothing. False = it could not. */
  write(place: RecordedPlace, record: EngineRecord): boolean {
    if (this.folder === null) return true
    const path = this.path(this.folder, place)
    const unfinished = `${path}.${crypto.randomUUID()}.unfinished`
    const { facts, modelNames, vocabSize, isCoordinated } = record
    const written = { form, ...place, modelNames, vocabSize, isCoordinated, registration: registrationOf(facts) }
    try {
      mkdirSync(this.folder, { recursive: true, mode: 0o700 })
      writeFileSync(unfinished, `${JSON.stringify(written)}\n`, { flag: "wx", mode: 0o600 })
      renameSync(unfinished, path)
      return true
    } catch {
      rmQuietly(unfinished)
      // What stands there is of another engine now.
      rmQuietly(path)
      return false
    }
  }

  private path(folder: string, { address, rank }: RecordedPlace): string {
    return join(folder, `${address.replace("tcp://", "").replace(/[^0-9A-Za-z.-]/g, "_")}-rank${rank}.json`)
  }
}

/** The record as it was written; null where it is not of this form, or of another place. */
function recordOf(value: unknown, place: RecordedPlace): EngineRecord | null {
  if (!isMap(value) || value.form !== form || value.address !== place.address || value.rank !== place.rank) return null
  const { modelNames, vocabSize, isCoordinated, registration } = value
  if (!Array.isArray(modelNames) || !modelNames.every((name) => typeof name === "string")) return null
  if (typeof vocabSize !== "number" || typeof isCoordinated !== "boolean" || !isMap(registration)) return null
  return { facts: factsOf(registration), modelNames, vocabSize, isCoordinated }
}

function isMap(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function rmQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    // Nothing depends on it.
  }
}
