import { afterEach, beforeEach, describe, expect, test } from "bun:test"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { resolveModel } from "../../src/model/hub"
import { type FakeFile, fakeModel, gitHash, sha256, startFakeHub } from "../support/fake-hub"

const config: FakeFile = { text: '{"model_type":"tiny"}' }
const tokenizer: FakeFile = {
  text: JSON.stringify({ model: { vocab: { hello: 1 } }, filler: "x".repeat(2000) }),
  large: true,
}
const template: FakeFile = { text: "{{ messages }}" }
const small = { "config.json": config, "tokenizer.json": tokenizer }

let root = ""
let lines: string[] = []

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "hub-test-"))
  lines = []
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function options(
  endpoint: string,
  changes: { revision?: string; token?: string; offline?: boolean; silenceMsMax?: number } = {},
) {
  return {
    revision: "main",
    token: null,
    offline: false,
    ...changes,
    cacheDir: join(root, "cache"),
    endpoint,
    progress: (line: string) => void lines.push(line),
  }
}

/** Everything below the cache: folders end in a slash, links show where they point, files their text. */
function tree(folder = join(root, "cache"), prefix = ""): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name)
      const name = `${prefix}${entry.name}`
      if (entry.isSymbolicLink()) return [`${name} -> ${readlinkSync(path)}`]
      return entry.isDirectory() ? tree(path, `${name}/`) : [`${name} = ${readFileSync(path, "utf8").slice(0, 40)}`]
    })
}

function snapshotOf(commit: string): string {
  return join(root, "cache", "models--acme--tiny", "snapshots", commit)
}

/** What a cache with the small model holds once everything is there. */
function wholeCache(commit: string, revision = "main"): string[] {
  const blobs = [
    `models--acme--tiny/blobs/${gitHash(config.text)} = ${config.text}`,
    `models--acme--tiny/blobs/${sha256(tokenizer.text)} = ${tokenizer.text.slice(0, 40)}`,
  ]
  return [
    ...blobs.sort(),
    `models--acme--tiny/refs/${revision} = ${commit}`,
    `models--acme--tiny/snapshots/${commit}/config.json -> ../../blobs/${gitHash(config.text)}`,
    `models--acme--tiny/snapshots/${commit}/tokenizer.json -> ../../blobs/${sha256(tokenizer.text)}`,
  ]
}

async function failure(name: string, given: ReturnType<typeof options>): Promise<string> {
  const resolved = await resolveModel(name, given)
  return resolved.ok ? `found ${resolved.value}` : `${resolved.error.kind}: ${resolved.error.message}`
}

describe("a model on the hub", () => {
  test("lands in the cache layout that Python's huggingface_hub reads", async () => {
    using hub = startFakeHub({ ...small })
    expect(await resolveModel(fakeModel, options(hub.endpoint))).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    expect(tree()).toEqual(wholeCache(hub.commit))
    expect(lines).toEqual(["acme/tiny: fetching config.json, 21 B", "acme/tiny: fetching tokenizer.json, 2.0 kB"])
  })

  test("brings its named templates and nothing else: no weights, no names that leave the folder", async () => {
    using hub = startFakeHub({
      ...small,
      "additional_chat_templates/tool_use.jinja": template,
      "additional_chat_templates/../../../../evil.jinja": template,
      "additional_chat_templates/notes.txt": template,
      "model.safetensors": { text: "weights", large: true },
      "README.md": { text: "words" },
    })
    expect((await resolveModel(fakeModel, options(hub.endpoint))).ok).toBe(true)
    const snapshot = `models--acme--tiny/snapshots/${hub.commit}`
    expect(tree().filter((line) => line.startsWith(snapshot))).toEqual([
      `${snapshot}/additional_chat_templates/tool_use.jinja -> ../../../blobs/${gitHash(template.text)}`,
      ...wholeCache(hub.commit).slice(-2),
    ])
    expect(hub.seen.filter((request) => /safetensors|README|evil|notes/.test(request.path))).toEqual([])
  })

  test("is not fetched again when nothing changed, and its new commit shares what stayed the same", async () => {
    using hub = startFakeHub({ ...small })
    await resolveModel(fakeModel, options(hub.endpoint))
    lines = []
    await resolveModel(fakeModel, options(hub.endpoint))
    expect(lines).toEqual([])

    hub.commit = "f".repeat(40)
    hub.files = { ...small, "config.json": { text: '{"model_type":"tinier"}' } }
    expect(await resolveModel(fakeModel, options(hub.endpoint))).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    expect(lines).toEqual(["acme/tiny: fetching config.json, 23 B"])
    expect(tree()).toContain(`models--acme--tiny/refs/main = ${hub.commit}`)
    expect(readFileSync(join(snapshotOf(hub.commit), "config.json"), "utf8")).toBe('{"model_type":"tinier"}')
  })

  test("is found under a branch with a slash, a tag, and its commit, which needs no ref", async () => {
    using hub = startFakeHub({ ...small })
    hub.revisions.push("refs/pr/1", "v1.0")
    await resolveModel(fakeModel, options(hub.endpoint, { revision: hub.commit }))
    expect(existsSync(join(root, "cache/models--acme--tiny/refs"))).toBe(false)
    await resolveModel(fakeModel, options(hub.endpoint, { revision: "refs/pr/1" }))
    expect(tree()).toEqual(wholeCache(hub.commit, "refs/pr/1"))
    await resolveModel(fakeModel, options(hub.endpoint, { revision: "v1.0" }))
    for (const revision of ["v1.0", "refs/pr/1", hub.commit]) {
      const offline = options(hub.endpoint, { revision, offline: true })
      expect(await resolveModel(fakeModel, offline)).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    }
  })

  test("gets the token on the endpoint alone, never where a redirect leads", async () => {
    using hub = startFakeHub({ ...small })
    // Tokens need no certain beginning: mirrors make their own.
    await resolveModel(fakeModel, options(hub.endpoint, { token: "secret" }))
    const seen = new Set(hub.seen.map((request) => `${request.origin} ${request.authorization}`))
    expect([...seen].sort()).toEqual(["hub Bearer secret", "storage null"])
  })
})

describe("a broken download", () => {
  test("is continued where it stopped", async () => {
    using hub = startFakeHub({ ...small })
    hub.cutAfterBytes = 800
    expect(await failure(fakeModel, options(hub.endpoint))).toBe(
      `hub_unreachable: cannot reach the hub ${hub.endpoint}: tokenizer.json ended after 800 of 2043 bytes`,
    )
    expect(existsSync(join(root, "cache/models--acme--tiny/refs"))).toBe(false)
    hub.cutAfterBytes = null
    hub.seen.length = 0
    expect(await resolveModel(fakeModel, options(hub.endpoint))).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    expect(hub.seen.filter((request) => request.origin === "storage").map((request) => request.range)).toEqual([
      "bytes=800-",
    ])
    expect(tree()).toEqual(wholeCache(hub.commit))
  })

  test("starts over where the hub cannot continue", async () => {
    using hub = startFakeHub({ ...small })
    hub.cutAfterBytes = 800
    await resolveModel(fakeModel, options(hub.endpoint))
    hub.cutAfterBytes = null
    hub.ranges = false
    expect((await resolveModel(fakeModel, options(hub.endpoint))).ok).toBe(true)
    expect(tree()).toEqual(wholeCache(hub.commit))
  })

  test("whose first part was spoiled is fetched whole", async () => {
    using hub = startFakeHub({ ...small })
    const blobs = join(root, "cache/models--acme--tiny/blobs")
    mkdirSync(blobs, { recursive: true })
    writeFileSync(join(blobs, `${sha256(tokenizer.text)}.incomplete`), "rubbish")
    expect((await resolveModel(fakeModel, options(hub.endpoint))).ok).toBe(true)
    expect(tree()).toEqual(wholeCache(hub.commit))
  })

  test("with another hash than the hub states is thrown away, small or large", async () => {
    for (const [path, file] of [
      ["config.json", { ...config, hash: "a".repeat(40) }],
      ["tokenizer.json", { ...tokenizer, hash: "b".repeat(64) }],
    ] as const) {
      using hub = startFakeHub({ ...small, [path]: file })
      expect(await failure(fakeModel, options(hub.endpoint))).toBe(
        `hub_broken: ${path} of acme/tiny does not have the hash that the hub states`,
      )
      expect(tree().filter((line) => line.includes("incomplete") || line.includes("refs"))).toEqual([])
      rmSync(join(root, "cache"), { recursive: true })
    }
  })

  test("leaves two processes at once with one whole cache", async () => {
    using hub = startFakeHub({ ...small })
    const both = [options(hub.endpoint), options(hub.endpoint)].map((given) => resolveModel(fakeModel, given))
    const whole = { ok: true, value: snapshotOf(hub.commit) } as const
    expect(await Promise.all(both)).toEqual([whole, whole])
    expect(tree()).toEqual(wholeCache(hub.commit))
  })
})

describe("the cache", () => {
  test("is used offline without a word to the hub", async () => {
    using hub = startFakeHub({ ...small })
    await resolveModel(fakeModel, options(hub.endpoint))
    hub.seen.length = 0
    const found = await resolveModel(fakeModel, options(hub.endpoint, { offline: true }))
    expect(found).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    expect(hub.seen).toEqual([])
  })

  test("is used, and said, when the hub cannot be reached or is down", async () => {
    using hub = startFakeHub({ ...small })
    await resolveModel(fakeModel, options(hub.endpoint))
    lines = []
    hub.refusal = { status: 503, code: "" }
    const found = await resolveModel(fakeModel, options(hub.endpoint))
    expect(found).toEqual({ ok: true, value: snapshotOf(hub.commit) })
    expect(lines).toEqual([
      `the hub ${hub.endpoint} cannot answer now (status 503); using the cache, ${snapshotOf(hub.commit)}`,
    ])
  })

  test("without the model is a clear end offline", async () => {
    expect(await failure(fakeModel, options("http://127.0.0.1:9", { offline: true }))).toBe(
      `model_not_found: revision main of acme/tiny is not in ${root}/cache, and offline mode is set (HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE)`,
    )
  })

  test("that cannot be written is one clear line", async () => {
    using hub = startFakeHub({ ...small })
    writeFileSync(join(root, "cache"), "a file where the folder should be")
    expect(await failure(fakeModel, options(hub.endpoint))).toBe(
      `cache_broken: cannot write to the hub cache ${root}/cache/models--acme--tiny (ENOTDIR)`,
    )
  })
})

describe("the hub's refusals", () => {
  test.each([
    [
      401,
      "RepoNotFound",
      null,
      "model_refused: the hub HUB refuses acme/tiny (status 401): it does not exist or is private, and HF_TOKEN is not set",
    ],
    [
      401,
      "RepoNotFound",
      "t",
      "model_refused: the hub HUB refuses acme/tiny (status 401): it does not exist or is private, and HF_TOKEN does not allow it",
    ],
    [
      401,
      "GatedRepo",
      null,
      "model_refused: acme/tiny may not be read (status 401): ask for access on its page, and set HF_TOKEN",
    ],
    [403, "GatedRepo", "t", "model_refused: acme/tiny may not be read (status 403): ask for access on its page"],
    [404, "RepoNotFound", null, "model_not_found: acme/tiny is neither a folder here nor a model on the hub HUB"],
    [404, "RevisionNotFound", null, "model_not_found: acme/tiny on the hub HUB has no revision main"],
    [429, "", null, "hub_unreachable: the hub HUB cannot answer now (status 429)"],
    [418, "", null, "hub_broken: the hub HUB answers status 418 for acme/tiny"],
  ] as const)("of status %d %s with token %p say what to do", async (status, code, token, expected) => {
    using hub = startFakeHub({ ...small })
    hub.refusal = { status, code }
    const given = { ...options(hub.endpoint), token }
    expect(await failure(fakeModel, given)).toBe(expected.replace("HUB", hub.endpoint))
  })

  test("are told from a hub that is not there, and from one that says nothing", async () => {
    using gone = startFakeHub({})
    const { endpoint } = gone
    gone[Symbol.dispose]()
    expect(await failure(fakeModel, options(endpoint))).toStartWith(
      `hub_unreachable: cannot reach the hub ${endpoint}: `,
    )
    using silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) })
    const address = silent.url.origin
    expect(await failure(fakeModel, options(address, { silenceMsMax: 50 }))).toBe(
      `hub_unreachable: cannot reach the hub ${address}: nothing came for 0.05 s`,
    )
  })

  test.each([
    ["text", () => new Response("hello"), "the hub HUB does not answer JSON"],
    ["no commit", () => Response.json({ sha: "../../etc" }), "the hub names no commit for acme/tiny"],
    [
      "a file address",
      () => Response.redirect("file:///etc/passwd"),
      "the hub HUB sends us to a place that is no web address",
    ],
    ["itself", (url: string) => Response.redirect(url), "the hub HUB redirects in circles"],
    ["too much", () => new Response("x".repeat(9_000_000)), "the hub HUB answers with more than 8388608 bytes"],
  ] as const)("do not take what makes no sense: %s", async (_, answer, expected) => {
    using odd = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(request.url) })
    const endpoint = odd.url.origin
    expect(await failure(fakeModel, options(endpoint))).toBe(`hub_broken: ${expected.replace("HUB", endpoint)}`)
  })

  test("of a model without config.json, and of files too large for what they are", async () => {
    using hub = startFakeHub({ "tokenizer.json": tokenizer })
    expect(await failure(fakeModel, options(hub.endpoint))).toBe(
      "model_not_found: acme/tiny on the hub has no config.json: not a model that can be served",
    )
    hub.files = { "config.json": config, "generation_config.json": { text: "x".repeat(1_048_577) } }
    expect(await failure(fakeModel, options(hub.endpoint))).toBe(
      "hub_broken: generation_config.json of acme/tiny is larger than 1048576 bytes",
    )
  })
})

test("a model in Mistral's layout is fetched, and found again in the cache, by its params.json", async () => {
  const params = { text: '{"dim":1}' }
  using hub = startFakeHub({ "params.json": params, "tekken.json": tokenizer, "tokenizer.model.v3": config })
  const fetched = await resolveModel(fakeModel, options(hub.endpoint))
  if (!fetched.ok) throw new Error(fetched.error.message)
  expect(readdirSync(fetched.value).sort()).toEqual(["params.json", "tekken.json", "tokenizer.model.v3"])
  expect(await resolveModel(fakeModel, options(hub.endpoint, { offline: true }))).toEqual(fetched)
})

describe("a name", () => {
  test("that is a folder wins over the hub; a file is no model", async () => {
    expect(await resolveModel(root, options("http://127.0.0.1:9"))).toEqual({ ok: true, value: root })
    const file = join(root, "model.gguf")
    writeFileSync(file, "")
    expect(await failure(file, options("http://127.0.0.1:9"))).toBe(
      `model_name: ${file} is a file: expected a model folder`,
    )
  })

  test.each([
    "../secrets",
    "a/../b",
    "/no/such/folder",
    "a/b/c",
    "org/na me",
    "org/",
    "/name",
    "org/na--me",
    "x".repeat(97),
    "org/.hidden",
    "org/name%2f..",
    "",
  ])("that could leave the cache is never looked up: %p", async (name) => {
    using hub = startFakeHub({ ...small })
    expect(await failure(name, options(hub.endpoint))).toBe(
      `model_not_found: ${name} is neither a folder nor a name of the form org/name`,
    )
    expect(hub.seen).toEqual([])
  })

  test.each(["../main", "a/../../b", "/main", "main/", "", "a b", "-x", ".", "x".repeat(256)])(
    "with an impossible revision is never looked up: %p",
    async (revision) => {
      using hub = startFakeHub({ ...small })
      expect(await failure(fakeModel, options(hub.endpoint, { revision }))).toBe(
        `model_name: --revision ${JSON.stringify(revision)}: expected a branch, a tag or a commit`,
      )
      expect(hub.seen).toEqual([])
    },
  )
})
