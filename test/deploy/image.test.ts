/**
 * The Dockerfile, without Docker: its steps are done in folders, and the server is started from what comes out as the
 * image would start it: by its own words, as its user, on a disk that cannot be written to.
 */
import { afterAll, describe, expect, test } from "bun:test"
import { readdirSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { makeQwen3Folder } from "../support/qwen3-folder"
import { type ServedProcess, serve } from "../support/serve"
import { buildImage, instructions } from "./image"

const isRoot = process.getuid?.() === 0
const image = isRoot && Bun.which("npm") !== null ? buildImage() : null
afterAll(() => image?.remove())

describe("the Dockerfile", () => {
  const given = (keyword: string): string[] =>
    instructions().flatMap((each) => (each.keyword === keyword ? [each.given] : []))

  test("starts from slim bases whose versions are pinned", () => {
    const bases = given("FROM").map((text) => text.split(/\s/)[0])
    expect(bases.length).toBe(2)
    for (const base of bases) expect(base).toMatch(/^[a-z]+:\d+\.\d+(?:\.\d+)?(?:-[a-z]+)?-slim$/)
  })

  test("ends as a user who is not root, given by number", () => {
    expect(given("USER")).toEqual([expect.stringMatching(/^[1-9]\d{3,}:[1-9]\d{3,}$/)])
    expect(instructions().findLastIndex(({ keyword }) => keyword === "RUN")).toBeLessThan(
      instructions().findIndex(({ keyword }) => keyword === "USER"),
    )
  })

  test("installs what the lock file says and nothing for development", () => {
    expect(given("RUN").join(" ")).toContain("npm ci --omit=dev")
  })
})

describe.skipIf(image === null)("the image", () => {
  // A group that is skipped is read all the same.
  if (image === null) return void test("needs root and npm", () => {})
  const { root, workdir, user, env, entrypoint, command, healthcheck, here } = image

  test("holds the product: no tests, no tools for development, one Bun", () => {
    const app = readdirSync(join(root, workdir)).sort()
    expect(app).toEqual(
      [
        ".npmrc",
        "LICENSE",
        "bun",
        "bunfig.toml",
        "node_modules",
        "package-lock.json",
        "package.json",
        "src",
        "wasm",
      ].sort(),
    )
    const packages = readdirSync(join(root, workdir, "node_modules"))
    expect(packages).toContain("elysia")
    for (const name of ["typescript", "bun", "@oven", "@biomejs", "assemblyscript"])
      expect(packages).not.toContain(name)
    expect(statSync(join(root, "cache")).uid).toBe(Number(user.split(":")[0]))
  })

  test("serves as it says by itself, is found healthy by its own check, and ends at SIGTERM", async () => {
    await using server = await start(command)
    const { port } = new URL(server.url)
    expect(await check(healthcheck, port)).toBe(0)
    expect(await tokenIds(server)).not.toEqual([])
    expect(await server.stop("SIGTERM")).toBe(0)
    expect(await check(healthcheck, port)).toBe(1)
  })

  test("listens where it says that it does", () => {
    expect(image.exposed).toBe("8000")
    expect(healthcheck.join(" ")).toContain(`http://127.0.0.1:${image.exposed}/health`)
    expect(command).toEqual(["render", "--host", "0.0.0.0"])
  })

  test("keeps a model's vocabulary in its cache", async () => {
    const folder = makeQwen3Folder()
    const cache = join(root, "cache/sluice")
    await using server = await start(["render", folder])
    expect(await tokenIds(server)).not.toEqual([])
    expect(readdirSync(cache).length).toBe(1)
  })

  test.skipIf(!canUnshare())("needs no more of a disk than to read it, root or not", async () => {
    // The whole file system becomes unwritable, the cache included, and the user the image's own.
    const [userId, groupId] = user.split(":")
    const script = `mount --make-rprivate / && mount -o remount,bind,ro / &&
      for at in ${tmpdir()} ${root}; do mount --bind $at $at && mount -o remount,bind,ro $at || exit 90; done
      touch ${root}/cache/written 2>/dev/null && exit 91
      exec "$@"`
    const drop = [
      "setpriv",
      `--reuid=${userId}`,
      `--regid=${groupId}`,
      "--clear-groups",
      "--no-new-privs",
      "--bounding-set=-all",
    ]
    const under = ["unshare", "--mount", "sh", "-c", script, "sh", ...drop]
    await using server = await start(["render", "--host", "0.0.0.0"], under)
    expect(await tokenIds(server)).not.toEqual([])
  })

  async function start(words: readonly string[], under: readonly string[] = []): Promise<ServedProcess> {
    // Tests reach nothing but this machine.
    const local = words.map((word) => (word === "0.0.0.0" ? "127.0.0.1" : word))
    const variables = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)]))
    return await serve([], {
      command: [...under, ...entrypoint.map(here), ...local],
      env: { ...variables, HOME: "/nonexistent" },
    })
  }

  async function check(words: readonly string[], port: string): Promise<number> {
    const [program, ...rest] = words.map((word) => here(word).replace(":8000/", `:${port}/`))
    return await Bun.spawn([program!, ...rest], { stdin: "ignore" }).exited
  }

  async function tokenIds(server: ServedProcess): Promise<unknown> {
    const body = JSON.stringify({ messages: [{ role: "user", content: "Hello" }] })
    const headers = { "content-type": "application/json" }
    const reply = await fetch(`${server.url}/v1/chat/completions/render`, { method: "POST", headers, body })
    return ((await reply.json()) as { token_ids: unknown }).token_ids
  }
})

/** Whether this machine lets us have mounts of our own. */
function canUnshare(): boolean {
  if (Bun.which("unshare") === null || Bun.which("setpriv") === null) return false
  return (
    Bun.spawnSync(["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -o remount,bind,ro /"])
      .exitCode === 0
  )
}
