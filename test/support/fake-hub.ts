/**
 * A hub on loopback with the few routes that model look-ups use. It answers like the real one: git hashes for small
 * files, SHA-256 for large ones behind a redirect to another origin, range requests, error codes in a header.
 */
import { createHash } from "node:crypto"

/** A file of the fake model. */
export interface FakeFile {
  readonly text: string
  /** Large files are listed with their SHA-256 and served by the second origin. */
  readonly large?: boolean
  /** Listed instead of the true hash. */
  readonly hash?: string
}

/** One request as the hub saw it. */
export interface SeenRequest {
  readonly origin: "hub" | "storage"
  readonly method: string
  readonly path: string
  readonly authorization: string | null
  readonly range: string | null
}

/** A running fake hub. Fields may be changed between requests. */
export interface FakeHub extends Disposable {
  readonly endpoint: string
  readonly seen: SeenRequest[]
  /** Paths of one model, `org/name` below. */
  files: { [path: string]: FakeFile }
  commit: string
  /** Branches and tags besides the commit itself. */
  revisions: string[]
  /** Answers instead of the look-ups: a status with the hub's error code. */
  refusal: { readonly status: number; readonly code: string } | null
  /** Sends only this many bytes of each download and breaks the connection. */
  cutAfterBytes: number | null
  /** False = a range request gets the whole file. */
  ranges: boolean
}

/** A file as look-ups list it. */
interface FakeEntry {
  readonly type: "file"
  readonly path: string
  readonly size: number
  readonly oid: string
  readonly lfs?: { readonly oid: string; readonly size: number; readonly pointerSize: number }
}

/** The one model that the fake hub has. */
export const fakeModel = "acme/tiny"

/** Git's hash of a file's content, as the hub lists it for small files. */
export function gitHash(text: string): string {
  return createHash("sha1")
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest("hex")
}

/** SHA-256 in hex. */
export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}

/** Starts a fake hub on two free ports; `using` ends it. */
export function startFakeHub(files: { [path: string]: FakeFile }): FakeHub {
  const note = (origin: SeenRequest["origin"], request: Request): void => {
    const url = new URL(request.url)
    const authorization = request.headers.get("Authorization")
    hub.seen.push({
      origin,
      method: request.method,
      path: url.pathname,
      authorization,
      range: request.headers.get("Range"),
    })
  }
  const refuse = (status: number, code: string): Response =>
    Response.json({ error: code }, { status, headers: { "X-Error-Code": code } })
  const entryOf = (path: string, file: FakeFile): FakeEntry => {
    const size = Buffer.byteLength(file.text)
    const entry: FakeEntry = { type: "file", path, size, oid: file.hash ?? gitHash(file.text) }
    return file.large
      ? { ...entry, oid: gitHash("pointer"), lfs: { oid: file.hash ?? sha256(file.text), size, pointerSize: 130 } }
      : entry
  }
  const contentOf = (request: Request, file: FakeFile): Response => {
    const bytes = Buffer.from(file.text)
    const from = hub.ranges ? Number(/^bytes=(\d+)-/.exec(request.headers.get("Range") ?? "")?.[1] ?? 0) : 0
    const headers: Record<string, string> = {}
    if (from > 0) headers["Content-Range"] = `bytes ${from}-${bytes.length - 1}/${bytes.length}`
    const cut = hub.cutAfterBytes === null ? bytes.length : from + hub.cutAfterBytes
    return new Response(bytes.subarray(from, cut), { status: from > 0 ? 206 : 200, headers })
  }

  const storage = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      note("storage", request)
      const file = hub.files[decodeURIComponent(new URL(request.url).pathname.slice(1))]
      return file === undefined ? new Response(null, { status: 404 }) : contentOf(request, file)
    },
  })
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      note("hub", request)
      const { pathname } = new URL(request.url)
      const api = `/api/models/${fakeModel}`
      if (hub.refusal !== null) return refuse(hub.refusal.status, hub.refusal.code)
      if (pathname.startsWith(`${api}/revision/`)) {
        const revision = decodeURIComponent(pathname.slice(`${api}/revision/`.length))
        if (revision !== hub.commit && !hub.revisions.includes(revision)) return refuse(404, "RevisionNotFound")
        return Response.json({ _id: "1", id: fakeModel, sha: hub.commit, lastModified: "2025-01-01T00:00:00.000Z" })
      }
      if (pathname === `${api}/paths-info/${hub.commit}`) {
        const asked: { paths: string[] } = await request.json()
        const entries = asked.paths.flatMap((path): object[] => {
          const file = hub.files[path]
          if (file !== undefined) return [entryOf(path, file)]
          const folder = Object.keys(hub.files).some((name) => name.startsWith(`${path}/`))
          return folder ? [{ type: "directory", path, size: 0, oid: gitHash(path) }] : []
        })
        return Response.json(entries)
      }
      const tree = `${api}/tree/${hub.commit}/`
      if (pathname.startsWith(tree)) {
        const folder = `${pathname.slice(tree.length)}/`
        const inside = Object.entries(hub.files).filter(([name]) => name.startsWith(folder))
        return Response.json(inside.map(([name, file]) => entryOf(name, file)))
      }
      const resolved = new RegExp(`^/${fakeModel}/resolve/([^/]+)/(.+)$`).exec(pathname)
      if (resolved !== null) {
        const revision = decodeURIComponent(resolved[1]!)
        if (revision !== hub.commit && !hub.revisions.includes(revision)) return refuse(404, "RevisionNotFound")
        const path = decodeURIComponent(resolved[2]!)
        const file = hub.files[path]
        if (file === undefined) return refuse(404, "EntryNotFound")
        const response = file.large
          ? new Response(null, { status: 302, headers: { Location: `${storage.url.origin}/${path}` } })
          : contentOf(request, file)
        // What Python's client reads before it fetches.
        const { oid, size, lfs } = entryOf(path, file)
        response.headers.set("X-Repo-Commit", hub.commit)
        response.headers.set("ETag", `"${oid}"`)
        response.headers.set("X-Linked-ETag", `"${lfs?.oid ?? oid}"`)
        response.headers.set("X-Linked-Size", String(size))
        return response
      }
      return refuse(404, "RepoNotFound")
    },
  })
  const hub: FakeHub = {
    endpoint: server.url.origin,
    seen: [],
    files,
    commit: "0123456789abcdef0123456789abcdef01234567",
    revisions: ["main"],
    refusal: null,
    cutAfterBytes: null,
    ranges: true,
    [Symbol.dispose]() {
      server.stop(true)
      storage.stop(true)
    },
  }
  return hub
}
