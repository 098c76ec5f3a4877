/** A headless Chromium, and pages of a folder in it. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { err, ok, type Result } from "../../src/result"

const names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
const debianPackage = "chromium-headless-shell"
/** A page that has not reported by then is broken. */
const reportMsMax = 60_000
const installMsMax = 300_000

/**
 * The path of a Chromium, else why there is none. Where a machine is there for nothing but the checks (`CI` is set), it is
 * installed from Debian's packages, which takes root.
 */
export function findChromium(): Result<string, string> {
  const found = names.map((name) => Bun.which(name)).find((path) => path !== null)
  if (found !== undefined) return ok(found)
  if (process.env.CI !== "true" && process.env.CI !== "1") return err("no Chromium on the PATH")
  if (process.getuid?.() !== 0 || Bun.which("apt-get") === null) return err("no Chromium, and no root with apt-get")
  const options = { env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" }, timeout: installMsMax }
  for (const step of [["update"], ["install", "--yes", "--no-install-recommends", debianPackage]]) {
    const run = Bun.spawnSync(["apt-get", "--quiet", ...step], { ...options, stdout: "ignore", stderr: "pipe" })
    if (run.exitCode !== 0) return err(`apt-get ${step[0]} ended with ${run.exitCode}: ${run.stderr.toString().trim()}`)
  }
  const installed = Bun.which(debianPackage)
  return installed === null ? err(`apt-get installed no ${debianPackage}`) : ok(installed)
}

/**
 * Opens a page over the files of a folder, and gives what it hands to `report(value)`, a function of its own. Throws
 * with what the browser wrote when it ends before, or after a minute. `resolve`: the module behind a bare name, as a
 * bundler or a development server would have it.
 */
export async function reportOf(
  chromium: string,
  folder: string,
  page: string,
  resolve: { readonly [name: string]: string } = {},
): Promise<unknown> {
  const reported = Promise.withResolvers<unknown>()
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === "/") return new Response(reporting + page, { headers: { "content-type": "text/html" } })
      if (pathname === "/report") {
        reported.resolve(await request.json())
        return new Response()
      }
      const file = Bun.file(join(folder, pathname))
      if (!(await file.exists())) return new Response("", { status: 404 })
      if (!pathname.endsWith(".js")) return new Response(file)
      let text = readFileSync(join(folder, pathname), "utf8")
      for (const [name, path] of Object.entries(resolve)) text = text.replaceAll(`"${name}"`, `"${path}"`)
      return new Response(text, { headers: { "content-type": "text/javascript" } })
    },
  })
  // Debian's command is a script around the browser: a process group of their own lets both be ended.
  const profile = join(folder, "chromium-profile")
  const flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--no-sandbox"]
  const browser = Bun.spawn([chromium, ...flags, `--user-data-dir=${profile}`, server.url.href], {
    detached: true,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  })
  const errors = new Response(browser.stderr).text()
  const late = setTimeout(() => reported.reject(new Error(`no report after ${reportMsMax} ms`)), reportMsMax)
  const ended = browser.exited.then(async (code) => {
    throw new Error(`the browser ended with ${code}:\n${await errors}`)
  })
  try {
    return await Promise.race([reported.promise, ended])
  } finally {
    clearTimeout(late)
    ended.catch(() => {})
    endGroup(browser.pid)
    await browser.exited
    await server.stop(true)
  }
}

/** What every page begins with: a way to report, also of errors that nobody catches. */
const reporting = `<!doctype html><meta charset="utf-8"><body><script>
  const report = (value) => fetch("/report", { method: "POST", body: JSON.stringify(value) })
  addEventListener("error", (event) => report({ error: event.message }))
  addEventListener("unhandledrejection", (event) => report({ error: String(event.reason) }))
</script>`

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL")
  } catch {
    // It ended by itself.
  }
}
