/**
 * The connection to the hub for one model: look-ups through the hub's client library, downloads by hand, because only
 * the answer to a range request says whether a stopped download can be continued. The token goes to the endpoint's own
 * origin and nowhere else, whatever redirects and page links say.
 */
import { createHash } from "node:crypto"
import { constants, createReadStream } from "node:fs"
import { open, stat, unlink } from "node:fs/promises"
import { HubApiError, listFiles, modelInfo, pathsInfo } from "@huggingface/hub"
import { err, ok, type Result } from "../result"

/** Where to look, and how. */
export interface HubOptions {
  /** Branch, tag or commit. */
  readonly revision: string
  readonly cacheDir: string
  /** Sent to the endpoint only; null = none. */
  readonly token: string | null
  readonly endpoint: string
  /** Use the cache alone. */
  readonly offline: boolean
  /** One line for each file fetched, and for a cache used in place of the hub. */
  progress(line: string): void
  /** How long the hub may say nothing, in milliseconds. */
  readonly silenceMsMax?: number
}

/** A model that was not found or not fetched; `message` is one line. */
export interface HubFailure {
  readonly kind: "model_name" | "model_not_found" | "model_refused" | "hub_unreachable" | "hub_broken" | "cache_broken"
  readonly message: string
}

/** A file as the hub lists it. Nothing here is checked yet. */
export interface HubFile {
  readonly path: string
  readonly bytes: number
  /** SHA-256 of a large file, git's SHA-1 of a small one, in hex: also the blob's name in the cache. */
  readonly hash: string
}

const silenceMsDefault = 30_000
const redirectsMax = 5
/** Answers to look-ups, in bytes, and entries of one folder. */
const answerBytesMax = 8 * 1024 * 1024
const folderEntriesMax = 1000

/** The hub cannot be reached, or stopped answering. Caught in this file and turned into a value. */
class Unreachable extends Error {}

/** Look-ups and downloads of one model. */
export class HubLink {
  private readonly name: string
  private readonly options: HubOptions
  private readonly origin: string
  /** The hub's own word for the last refusal, from a header that the library drops. */
  private refusal = ""

  constructor(name: string, options: HubOptions) {
    this.name = name
    this.options = options
    this.origin = new URL(options.endpoint).origin
  }

  /** The commit that a branch, tag or commit name stands for, as the hub says it. */
  commitOf(revision: string): Promise<Result<string, HubFailure>> {
    return this.attempt(async () => {
      const info = await modelInfo({ ...this.lookup(), name: this.name, revision, additionalFields: ["sha"] })
      return String(info.sha)
    })
  }

  /** Those of `paths` that exist, and the files directly in `folder`. */
  listFiles(commit: string, paths: readonly string[], folder: string): Promise<Result<HubFile[], HubFailure>> {
    return this.attempt(async () => {
      const repo = { type: "model", name: this.name } as const
      const found: HubFile[] = []
      const entries = await pathsInfo({ ...this.lookup(), repo, revision: commit, paths: [...paths, folder] })
      for (const entry of entries) if (entry.type === "file") found.push(hubFile(entry))
      if (!entries.some((entry) => entry.type === "directory" && entry.path === folder)) return found
      let seen = 0
      for await (const entry of listFiles({ ...this.lookup(), repo, revision: commit, path: folder })) {
        if (entry.type === "file") found.push(hubFile(entry))
        seen += 1
        if (seen === folderEntriesMax) break
      }
      return found
    })
  }

  /**
   * Fetches a file to `partial` and checks its size and hash. What `partial` already holds is kept, unless `afresh` or
   * the hub cannot continue; a break leaves it for the next try. The file is never cut, and writes go to their own place
   * in it: two processes that fetch the same blob at once only write the same bytes twice. A failure says whether the
   * try had continued.
   */
  async download(
    commit: string,
    file: HubFile,
    partial: string,
    afresh: boolean,
  ): Promise<Result<null, HubFailure & { readonly resumed: boolean }>> {
    let start = (await stat(partial).catch(() => null))?.size ?? 0
    if (start > file.bytes) {
      await unlink(partial)
      start = 0
    }
    if (afresh) start = 0
    const done = await this.attempt(async () => {
      if (start < file.bytes || start === 0) await this.receive(commit, file, partial, start)
      return (await hashOf(partial, file)) === file.hash
    })
    const resumed = start > 0
    if (!done.ok) return err({ ...done.error, resumed })
    if (done.value) return ok(null)
    return err({ ...broken(`${file.path} of ${this.name} does not have the hash that the hub states`), resumed })
  }

  private async receive(commit: string, file: HubFile, partial: string, from: number): Promise<void> {
    const path = file.path.split("/").map(encodeURIComponent).join("/")
    const url = `${this.options.endpoint}/${this.name}/resolve/${commit}/${path}`
    // Compressed bytes could not be continued, nor counted against the stated size.
    const headers = new Headers({ "Accept-Encoding": "identity" })
    if (from > 0) headers.set("Range", `bytes=${from}-`)
    const silence = new Silence(this.options.silenceMsMax ?? silenceMsDefault)
    try {
      const response = await this.request(url, { headers }, silence)
      if (!response.ok) throw new HubApiError(url, response.status)
      const continued = response.status === 206
      if (continued && !response.headers.get("Content-Range")?.startsWith(`bytes ${from}-`)) {
        throw new Error(`answers another part of ${file.path} than was asked for`)
      }
      const target = await open(partial, constants.O_RDWR | constants.O_CREAT)
      try {
        let at = continued ? from : 0
        for await (const chunk of silence.chunks(response)) {
          if (at + chunk.length > file.bytes) throw new Error(`sends more of ${file.path} than it states`)
          await target.write(chunk, 0, chunk.length, at)
          at += chunk.length
        }
        if (at < file.bytes) throw new Unreachable(`${file.path} ended after ${at} of ${file.bytes} bytes`)
        await target.sync()
      } finally {
        await target.close()
      }
    } finally {
      silence.end()
    }
  }

  /** What every look-up of the library gets. The token is added by `request`, which sees where it goes. */
  private lookup(): { readonly hubUrl: string; readonly fetch: typeof fetch } {
    const answer = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => {
      const silence = new Silence(this.options.silenceMsMax ?? silenceMsDefault)
      try {
        const response = await this.request(url instanceof Request ? url.url : String(url), init ?? {}, silence)
        const chunks: Uint8Array[] = []
        let bytes = 0
        for await (const chunk of silence.chunks(response)) {
          bytes += chunk.length
          if (bytes > answerBytesMax) throw new Error(`answers with more than ${answerBytesMax} bytes`)
          chunks.push(chunk)
        }
        return new Response(Buffer.concat(chunks), { status: response.status, headers: response.headers })
      } finally {
        silence.end()
      }
    }
    // The library only ever calls it; `preconnect` is there because Bun's type of fetch asks for it.
    return { hubUrl: this.options.endpoint, fetch: Object.assign(answer, { preconnect: () => {} }) }
  }

  /** One request with its redirects. Each step goes to http or https, and has the token only on the endpoint's origin. */
  private async request(url: string, init: RequestInit, silence: Silence): Promise<Response> {
    let next = URL.parse(url)
    for (let step = 0; step <= redirectsMax; step++) {
      if (next === null || !/^https?:$/.test(next.protocol))
        throw new Error("sends us to a place that is no web address")
      const headers = new Headers(init.headers)
      headers.delete("Authorization")
      if (this.options.token !== null && next.origin === this.origin) {
        headers.set("Authorization", `Bearer ${this.options.token}`)
      }
      let response: Response
      try {
        response = await fetch(next, { ...init, headers, redirect: "manual", signal: silence.signal })
      } catch (error) {
        throw new Unreachable(silence.signal.aborted ? silence.words : wordsOf(error))
      }
      const location = response.status >= 300 && response.status < 400 ? response.headers.get("Location") : null
      if (location === null) {
        this.refusal = response.headers.get("X-Error-Code") ?? ""
        return response
      }
      await response.body?.cancel()
      next = URL.parse(location, next)
    }
    throw new Error("redirects in circles")
  }

  /** Runs one exchange and turns what it throws into a value. */
  private async attempt<Value>(exchange: () => Promise<Value>): Promise<Result<Value, HubFailure>> {
    const { endpoint } = this.options
    try {
      return ok(await exchange())
    } catch (error) {
      if (error instanceof Unreachable) {
        return err({ kind: "hub_unreachable", message: `cannot reach the hub ${endpoint}: ${error.message}` })
      }
      if (error instanceof HubApiError) return err(this.refused(error.statusCode))
      // A full disk and the like is not the hub's doing.
      if (error instanceof Error && "syscall" in error) throw error
      return err(
        broken(`the hub ${endpoint} ${error instanceof SyntaxError ? "does not answer JSON" : wordsOf(error)}`),
      )
    }
  }

  private refused(status: number): HubFailure {
    const { endpoint, revision, token } = this.options
    const name = this.name
    if (status >= 500 || status === 429) {
      return { kind: "hub_unreachable", message: `the hub ${endpoint} cannot answer now (status ${status})` }
    }
    if (status === 403 || this.refusal === "GatedRepo") {
      const what = `${name} may not be read (status ${status}): ask for access on its page`
      return { kind: "model_refused", message: token === null ? `${what}, and set HF_TOKEN` : what }
    }
    if (status === 401) {
      const what = token === null ? "HF_TOKEN is not set" : "HF_TOKEN does not allow it"
      return {
        kind: "model_refused",
        message: `the hub ${endpoint} refuses ${name} (status 401): it does not exist or is private, and ${what}`,
      }
    }
    if (status === 404 && this.refusal === "RevisionNotFound") {
      return { kind: "model_not_found", message: `${name} on the hub ${endpoint} has no revision ${revision}` }
    }
    if (status === 404) {
      return { kind: "model_not_found", message: `${name} is neither a folder here nor a model on the hub ${endpoint}` }
    }
    return broken(`the hub ${endpoint} answers status ${status} for ${name}`)
  }
}

/** Ends an exchange in which nothing came for a while. */
class Silence {
  readonly words: string
  readonly signal: AbortSignal
  private readonly timer: ReturnType<typeof setTimeout>

  constructor(ms: number) {
    const controller = new AbortController()
    this.signal = controller.signal
    this.words = `nothing came for ${ms / 1000} s`
    this.timer = setTimeout(() => controller.abort(), ms)
  }

  /** The body's chunks; each one starts the wait anew. */
  async *chunks(response: Response): AsyncGenerator<Uint8Array> {
    if (response.body === null) return
    const reader = response.body.getReader()
    try {
      for (;;) {
        const { done, value } = await reader.read().catch((error: unknown) => {
          throw new Unreachable(this.signal.aborted ? this.words : wordsOf(error))
        })
        if (done) return
        this.timer.refresh()
        yield value
      }
    } finally {
      // Whoever stops reading early closes the connection as well.
      await reader.cancel().catch(() => {})
    }
  }

  end(): void {
    clearTimeout(this.timer)
  }
}

function hubFile(entry: { path: string; size: number; oid?: string; lfs?: { oid: string; size: number } }): HubFile {
  // For a large file `oid` is its pointer's; the content's own hash is under `lfs`.
  return { path: String(entry.path), bytes: entry.lfs?.size ?? entry.size, hash: String(entry.lfs?.oid ?? entry.oid) }
}

/** SHA-256, or git's blob hash for a hash of 40 digits. */
async function hashOf(path: string, file: HubFile): Promise<string> {
  const git = file.hash.length === 40
  const hash = createHash(git ? "sha1" : "sha256")
  if (git) hash.update(`blob ${file.bytes}\0`)
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest("hex")
}

function wordsOf(error: unknown): string {
  const words = error instanceof Error ? error.message : String(error)
  return words.split("\n")[0]!.replace(/\.$/, "")
}

function broken(message: string): HubFailure {
  return { kind: "hub_broken", message }
}
