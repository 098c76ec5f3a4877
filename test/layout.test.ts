/**
 * The shape of src/ (ARCHITECTURE.md), as a test: who may import whom, no loops, no catch-all files, and nothing but
 * the entry point reads argv or the environment. Imports are read as text, so type imports count as well.
 */
import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

/**
 * Folder (or single file) of src/ → what it may import besides itself. `result` may be imported by all and is not
 * repeated. Imports point down the road: nothing here may name what stands above it.
 */
const mayImport: { readonly [room: string]: readonly string[] } = {
  result: [],
  ir: [],
  config: ["ir"],
  http: ["ir"],
  tokenizer: ["ir", "model"],
  model: ["ir"],
  prompt: ["ir", "tokenizer", "model"],
  parser: ["ir"],
  engine: ["ir", "config"],
  generate: ["ir", "tokenizer", "parser"],
  api: ["ir", "config", "http", "prompt", "generate"],
}

/** What a file must never reach, even through others: only the root chooses an engine. */
const unreachable: { readonly [file: string]: readonly string[] } = {
  "api/app.ts": ["engine/"],
  "renderer.ts": ["engine/", "server.ts"],
  "generate/generate.ts": ["engine/", "api/", "http/"],
}

/** The only file that may read argv and the environment; everything else is given what it needs. */
const entryPoint = "main.ts"

/** What package.json exports: passes on what users of the package import, and is imported by nothing in src/. */
const packageEntry = "tokenizer/package-entry.ts"

/** The one file below it that reads from a disk; the build for npm puts the bytes it reads in its place. */
const replacedInBuild = "tokenizer/wasm-bytes.ts"

/** Names that gather whatever has no place of its own. */
const catchAllNames = ["types.ts", "utils.ts", "util.ts", "helpers.ts", "common.ts", "index.ts"]

const src = join(import.meta.dir, "../src")
const files = [...new Bun.Glob("**/*.ts").scanSync({ cwd: src })].sort()
const importsOf = new Map(files.map((file) => [file, ownImports(file)]))

/** Everything a file imports, as it is written there. */
function specifiers(file: string): string[] {
  const text = readFileSync(join(src, file), "utf8")
  return [
    ...text.matchAll(/^[ \t]*(?:import|export)\b[^"';]*?\bfrom\s*["']([^"']+)["']/gm),
    ...text.matchAll(/^[ \t]*import\s*["']([^"']+)["']/gm),
    ...text.matchAll(/\bimport\(\s*["']([^"']+)["']\s*\)/g),
  ].map((match) => match[1]!)
}

/** Imports of our own files, as paths below src/. Packages and assets that are not TypeScript are left out. */
function ownImports(file: string): string[] {
  const found: string[] = []
  for (const specifier of new Set(specifiers(file))) {
    if (!specifier.startsWith(".")) continue
    // By absolute paths, so that leaving src/ and coming back hides nothing.
    const path = relative(src, join(src, dirname(file), specifier))
    for (const candidate of [path, `${path}.ts`]) {
      if (candidate.endsWith(".ts") && !candidate.startsWith("..") && existsSync(join(src, candidate))) {
        found.push(candidate)
      }
    }
  }
  return found
}

/** The folder a file lives in, or its own name for the files at the top of src/. */
function roomOf(file: string): string {
  const slash = file.indexOf("/")
  return slash === -1 ? file.replace(/\.ts$/, "") : file.slice(0, slash)
}

/** A file at the top of src/ that the table does not name puts the others together and may import all of them. */
function isRoot(file: string): boolean {
  return !file.includes("/") && mayImport[roomOf(file)] === undefined
}

function isAllowed(from: string, to: string): boolean {
  if (isRoot(from)) return true
  const room = roomOf(from)
  return roomOf(to) === room || roomOf(to) === "result" || (mayImport[room] ?? []).includes(roomOf(to))
}

/** Files that `start` imports, directly or through others. */
function reachable(start: string): Set<string> {
  const seen = new Set<string>()
  const open = [start]
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    for (const next of importsOf.get(file) ?? []) {
      if (seen.has(next)) continue
      seen.add(next)
      open.push(next)
    }
  }
  return seen
}

/** Source without its comments, as far as whole lines and blocks at line starts go: enough to look for words of code. */
function code(file: string): string {
  return readFileSync(join(src, file), "utf8")
    .replace(/^[ \t]*\/\*[\s\S]*?\*\//gm, "")
    .replace(/(^|\s)\/\/.*$/gm, "")
}

describe("imports", () => {
  test("are found in src", () => {
    expect(files.length).toBeGreaterThan(0)
    expect(importsOf.get("ir/engine.ts")).toContain("result.ts")
  })

  test("point down the road", () => {
    const upward = files.flatMap((from) =>
      importsOf
        .get(from)!
        .filter((to) => !isAllowed(from, to))
        .map((to) => `${from} → ${to}`),
    )
    expect(upward).toEqual([])
  })

  test("of folders are all in the table", () => {
    const rooms = new Set(files.filter((file) => file.includes("/")).map(roomOf))
    expect([...rooms].filter((room) => mayImport[room] === undefined)).toEqual([])
  })

  test("make no loop, neither of files nor of rows of the table", () => {
    const loops = files.filter((file) => reachable(file).has(file)).map((file) => `${file} reaches itself`)
    expect(loops).toEqual([])

    const reaches = (room: string, goal: string): boolean =>
      (mayImport[room] ?? []).some((next) => next === goal || reaches(next, goal))
    expect(Object.keys(mayImport).filter((room) => reaches(room, room))).toEqual([])
  })

  test("never lead where a file must not go", () => {
    const reached = Object.entries(unreachable).flatMap(([root, prefixes]) =>
      [...reachable(root)]
        .filter((file) => prefixes.some((prefix) => file.startsWith(prefix)))
        .map((file) => `${root} → … → ${file}`),
    )
    expect(reached).toEqual([])
  })

  test("of the package's entry need no package and no runtime's modules, and nothing imports it", () => {
    const below = [packageEntry, ...reachable(packageEntry)].filter((file) => file !== replacedInBuild)
    expect(below).toContain("tokenizer/wasm-module.ts")
    const foreign = below.flatMap((file) =>
      specifiers(file)
        .filter((specifier) => !specifier.startsWith("."))
        .map((specifier) => `${file} → ${specifier}`),
    )
    expect(foreign).toEqual([])
    expect(files.filter((file) => importsOf.get(file)!.includes(packageEntry))).toEqual([])
  })
})

describe("files", () => {
  test("have names of their own", () => {
    expect(files.filter((file) => catchAllNames.includes(file.split("/").at(-1)!))).toEqual([])
  })

  test("are named in kebab-case", () => {
    expect(files.filter((file) => !/^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*\.ts$/.test(file))).toEqual(
      [],
    )
  })

  test("export by name and pass nothing on", () => {
    const barrels = files.filter((file) =>
      /^export\s+(?:type\s+)?(?:\*|\{[^}]*\}\s*from\b|default\b)/m.test(code(file)),
    )
    expect(barrels).toEqual([packageEntry])
  })

  test("other than the entry point read neither argv nor the environment", () => {
    const reads =
      /\b(?:process|Bun|meta)\b[^;\n]*\b(?:argv|env)\b|\b(?:argv|env)\b[^;\n]*\b(?:process|Bun)\b|node:process/
    const readers = files.filter((file) => file !== entryPoint && reads.test(code(file)))
    expect(readers).toEqual([])
  })

  test("name what they import, so that it can be checked", () => {
    const computed = files.filter((file) => /\bimport\(\s*(?!["'])/.test(code(file)))
    expect(computed).toEqual([])
  })

  test("use no `any`: the linter checks it, and no file turns that off", () => {
    const biome: unknown = JSON.parse(readFileSync(join(src, "../biome.json"), "utf8"))
    expect(biome).toMatchObject({ linter: { rules: { suspicious: { noExplicitAny: "error" } } } })
    const silenced = files.filter((file) =>
      /biome-ignore\S*\s[^\n]*noExplicitAny|@ts-(?:nocheck|ignore)/.test(readFileSync(join(src, file), "utf8")),
    )
    expect(silenced).toEqual([])
  })
})
