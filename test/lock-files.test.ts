import { describe, expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { dirname, join } from "node:path"

const root = join(import.meta.dir, "..")
const lockFiles = [...new Bun.Glob("**/package-lock.json").scanSync({ cwd: root })]
  .filter((file) => !file.includes("node_modules/"))
  .sort()

describe("lock files", () => {
  test("name no registry, so that every machine installs from its own", () => {
    expect(lockFiles).toContain("package-lock.json")
    expect(lockFiles.filter((file) => /"resolved"\s*:/.test(readFileSync(join(root, file), "utf8")))).toEqual([])
  })

  test("stand beside manifests that pin every version exactly", () => {
    const loose: string[] = []
    for (const file of lockFiles) {
      const manifest: { [group: string]: { [name: string]: string } } = JSON.parse(
        readFileSync(join(root, dirname(file), "package.json"), "utf8"),
      )
      for (const group of ["dependencies", "devDependencies", "optionalDependencies"]) {
        for (const [name, version] of Object.entries(manifest[group] ?? {})) {
          if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version)) loose.push(`${file}: ${name} ${version}`)
        }
      }
    }
    expect(loose).toEqual([])
  })
})
