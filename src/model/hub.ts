/**
 * A model's name → a folder with its configuration files: a local folder, the hub cache, or the hub. The cache has the
 * layout of Python's huggingface_hub, so that each finds what the other has fetched:
 * `models--org--name/{blobs/<etag>, refs/<revision>, snapshots/<commit>/<file> → ../../blobs/<etag>}`.
 * Weights are never fetched. Whatever comes from the hub (commits, hashes, names, sizes) is checked before it is used.
 */
import { lstat, mkdir, readFile, rename, stat, symlink, unlink, writeFile } from "node:fs/promises"
import { dirname, join, relative, resolve } from "node:path"
import { err, ok, type Result } from "../result"
import { modelFileBytesMax } from "./files"
import type { HubFailure, HubFile, HubLink, HubOptions } from "./hub-link"

/** Files that are fetched where the model has them, and the largest size of each in bytes. */
const wantedFiles: { readonly [name: string]: number } = {
  "config.json": modelFileBytesMax.config,
  "generation_config.json": modelFileBytesMax.generationConfig,
  "tokenizer.json": modelFileBytesMax.tokenizer,
  "tokenizer_config.json": modelFileBytesMax.tokenizerConfig,
  "chat_template.jinja": modelFileBytesMax.chatTemplate,
  "chat_template.json": modelFileBytesMax.chatTemplate,
  "params.json": modelFileBytesMax.config,
  "tekken.json": modelFileBytesMax.tokenizer,
  // Only the names of these are read.
  "tokenizer.model.v3": modelFileBytesMax.tokenizerConfig,
  "tokenizer.model.v7": modelFileBytesMax.tokenizerConfig,
  "tokenizer.model.v7m1": modelFileBytesMax.tokenizerConfig,
}
/** One of these makes a folder a model's. */
const configFiles: readonly string[] = ["config.json", "params.json"]

/** Named templates live one level down; nothing else there is fetched. */
const templateFolder = "additional_chat_templates"
const templateName = /^additional_chat_templates\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.jinja$/

/** The longest name and revision that are looked up. */
const nameCharsMax = 96
const revisionCharsMax = 255

const commitPattern = /^[0-9a-f]{40}$/
const hashPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/

/**
 * Gives the folder of a model. An existing folder wins over a name on the hub. Online, the hub says which commit the
 * revision is; if it cannot be reached, what the cache has is used, and said.
 */
export async function resolveModel(nameOrFolder: string, options: HubOptions): Promise<Result<string, HubFailure>> {
  const local = await stat(nameOrFolder).catch(() => null)
  if (local?.isDirectory()) return ok(resolve(nameOrFolder))
  if (local !== null) return fail("model_name", `${nameOrFolder} is a file: expected a model folder`)
  if (!isHubName(nameOrFolder)) {
    return fail("model_not_found", `${nameOrFolder} is neither a folder nor a name of the form org/name`)
  }
  if (!isRevision(options.revision)) {
    return fail("model_name", `--revision ${JSON.stringify(options.revision)}: expected a branch, a tag or a commit`)
  }
  const cache = join(resolve(options.cacheDir), `models--${nameOrFolder.replace("/", "--")}`)
  if (options.offline) {
    const found = await findCached(cache, options.revision)
    if (found !== null) return ok(found)
    const where = `revision ${options.revision} of ${nameOrFolder} is not in ${options.cacheDir}`
    return fail("model_not_found", `${where}, and offline mode is set (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)`)
  }
  // Loaded here because local folders and the cache do without the hub's client library.
  const { HubLink } = await import("./hub-link")
  const link = new HubLink(nameOrFolder, options)
  try {
    const fetched = await fetchSnapshot(link, cache, nameOrFolder, options)
    if (fetched.ok || fetched.error.kind !== "hub_unreachable") return fetched
    const found = await findCached(cache, options.revision)
    if (found === null) return fetched
    options.progress(`${fetched.error.message}; using the cache, ${found}`)
    return ok(found)
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined
    if (typeof code !== "string") throw error
    return fail("cache_broken", `cannot write to the hub cache ${cache} (${code})`)
  }
}

/** Brings a snapshot up to date, and only then lets the revision point to it. */
async function fetchSnapshot(
  link: HubLink,
  cache: string,
  name: string,
  options: HubOptions,
): Promise<Result<string, HubFailure>> {
  const commit = await link.commitOf(options.revision)
  if (!commit.ok) return commit
  if (!commitPattern.test(commit.value)) return fail("hub_broken", `the hub names no commit for ${name}`)
  const listed = await link.listFiles(commit.value, Object.keys(wantedFiles), templateFolder)
  if (!listed.ok) return listed
  const files = listed.value.filter((file) => Object.hasOwn(wantedFiles, file.path) || templateName.test(file.path))
  if (!files.some((file) => configFiles.includes(file.path))) {
    return fail("model_not_found", `${name} on the hub has no config.json: not a model that can be served`)
  }
  const snapshot = join(cache, "snapshots", commit.value)
  for (const file of files) {
    if (!hashPattern.test(file.hash)) return fail("hub_broken", `the hub gives no hash for ${file.path} of ${name}`)
    const bytesMax = wantedFiles[file.path] ?? modelFileBytesMax.chatTemplate
    if (!(file.bytes >= 0 && file.bytes <= bytesMax)) {
      return fail("hub_broken", `${file.path} of ${name} is larger than ${bytesMax} bytes`)
    }
    const blob = await fetchBlob(link, cache, name, commit.value, file, options)
    if (!blob.ok) return blob
    await pointTo(blob.value, join(snapshot, file.path))
  }
  if (options.revision !== commit.value) {
    await writeWhole(join(cache, "refs", options.revision), commit.value)
  }
  return ok(snapshot)
}

/** The blob's path, after it was fetched unless it is there. What a stopped download left is continued. */
async function fetchBlob(
  link: HubLink,
  cache: string,
  name: string,
  commit: string,
  file: HubFile,
  options: HubOptions,
): Promise<Result<string, HubFailure>> {
  const blob = join(cache, "blobs", file.hash)
  const size = (await stat(blob).catch(() => null))?.size
  if (size === file.bytes) return ok(blob)
  await mkdir(dirname(blob), { recursive: true })
  const partial = `${blob}.incomplete`
  options.progress(`${name}: fetching ${file.path}, ${readableSize(file.bytes)}`)
  try {
    let done = await link.download(commit, file, partial, false)
    if (!done.ok && done.error.kind === "hub_broken" && done.error.resumed) {
      // What was there before may have been the broken part.
      done = await link.download(commit, file, partial, true)
    }
    if (!done.ok) {
      if (done.error.kind === "hub_broken") await unlink(partial).catch(() => {})
      return done
    }
    await rename(partial, blob)
  } catch (error) {
    // Another process that fetched the same blob at the same time may have put it in place.
    if ((await stat(blob).catch(() => null))?.size !== file.bytes) throw error
  }
  return ok(blob)
}

/** A snapshot in the cache that has a config.json or a params.json, or null. */
async function findCached(cache: string, revision: string): Promise<string | null> {
  const named = await readFile(join(cache, "refs", revision), "utf8").catch(() => null)
  const commit = named === null ? revision : named.trim()
  if (!commitPattern.test(commit)) return null
  const snapshot = join(cache, "snapshots", commit)
  for (const name of configFiles) {
    if ((await stat(join(snapshot, name)).catch(() => null))?.isFile()) return snapshot
  }
  return null
}

/** Makes `path` a relative link to the blob. A link that points elsewhere is replaced in one step. */
async function pointTo(blob: string, path: string): Promise<void> {
  const target = relative(dirname(path), blob)
  await mkdir(dirname(path), { recursive: true })
  const present = await lstat(path).catch(() => null)
  if (present !== null && (await stat(path).catch(() => null))?.ino === (await stat(blob)).ino) return
  const temporary = temporaryName(path)
  await symlink(target, temporary)
  await rename(temporary, path)
}

async function writeWhole(path: string, text: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => null)) === text) return
  await mkdir(dirname(path), { recursive: true })
  const temporary = temporaryName(path)
  await writeFile(temporary, text, { flush: true })
  await rename(temporary, path)
}

function temporaryName(path: string): string {
  return `${path}.${crypto.randomUUID()}.tmp`
}

/** `org/name`, or an old model's single name, by the hub's own rules. Nothing that passes can leave the cache folder. */
function isHubName(name: string): boolean {
  const parts = name.split("/")
  if (name.length > nameCharsMax || parts.length > 2 || name.includes("--") || name.includes("..")) return false
  return parts.every((part) => /^\w(?:[\w.-]*\w)?$/.test(part)) && !name.endsWith(".git")
}

function isRevision(revision: string): boolean {
  if (revision.length > revisionCharsMax || revision.includes("..")) return false
  return revision.split("/").every((part) => /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/.test(part))
}

function readableSize(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

function fail(kind: HubFailure["kind"], message: string): Result<never, HubFailure> {
  return err({ kind, message })
}
