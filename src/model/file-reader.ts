/** Reads one file of a model folder, with a size limit. A file that does not exist is null: most are optional. */
import { readFile, stat } from "node:fs/promises"
import { err, ok, type Result } from "../result"
import { isObject, type JsonObject } from "./json-object"

/** A file that exists but cannot be used; `message` is one line that names it. */
export interface FileFailure {
  readonly kind: "model_broken"
  readonly message: string
}

/** The bytes of a file of at most `bytesMax` bytes; null when there is no such file. */
export async function readBytesFile(path: string, bytesMax: number): Promise<Result<Uint8Array | null, FileFailure>> {
  try {
    const found = await stat(path)
    if (!found.isFile()) return broken(path, "is not a file")
    if (found.size > bytesMax) return broken(path, `is larger than ${bytesMax} bytes`)
    return ok(await readFile(path))
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error)
    if (code === "ENOENT" || code === "ENOTDIR") return ok(null)
    return broken(path, `cannot be read (${code})`)
  }
}

/** The text of a UTF-8 file of at most `bytesMax` bytes, without its byte order mark; null when there is no such file. */
export async function readTextFile(path: string, bytesMax: number): Promise<Result<string | null, FileFailure>> {
  const bytes = await readBytesFile(path, bytesMax)
  if (!bytes.ok || bytes.value === null) return bytes.ok ? ok(null) : bytes
  try {
    return ok(new TextDecoder("utf-8", { fatal: true }).decode(bytes.value))
  } catch {
    return broken(path, "is not UTF-8")
  }
}

/** The object in a JSON file; null when there is no such file. Anything but an object is a failure. */
export async function readJsonFile(path: string, bytesMax: number): Promise<Result<JsonObject | null, FileFailure>> {
  const text = await readTextFile(path, bytesMax)
  if (!text.ok || text.value === null) return text.ok ? ok(null) : text
  try {
    const value: unknown = JSON.parse(text.value)
    return isObject(value) ? ok(value) : broken(path, "must hold a JSON object")
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : "cannot be parsed"
    return broken(path, `is not JSON: ${reason}`)
  }
}

function broken(path: string, what: string): Result<never, FileFailure> {
  return err({ kind: "model_broken", message: `${path} ${what}` })
}
