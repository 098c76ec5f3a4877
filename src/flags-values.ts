/**
 * What the text after a flag can mean: each kind checks one text and says what it expected instead. Command line,
 * environment and config file all go through these, so that a value means the same wherever it stands.
 */
import { isIPv6 } from "node:net"
import { type LoraModule, type StructuredOutputsBackend, structuredOutputsBackends } from "./config"
import { splitShellWords } from "./engine/process/shell-words"
import { parseJsonText } from "./http/json-text"
import type { Json } from "./ir/conversation"
import { err, ok, type Result } from "./result"

/** Nested arrays and objects that a JSON value of a flag may have. */
const jsonDepthMax = 256

/** Longest wait that timers can hold: 2^31 − 1 ms. */
const timerMsMax = 2_147_483_647

/**
 * One kind of value. `read` gives the value, or what was expected, as the end of "expected …". `sample` stands for the
 * value in the help text.
 */
export interface ValueKind<Value> {
  readonly sample: string
  read(text: string): Result<Value, string>
}

/** Any text but an empty one. */
export function textValue(sample: string): ValueKind<string> {
  return { sample, read: (text) => (text === "" ? err("a text that is not empty") : ok(text)) }
}

/** One of a few words. */
export function choiceValue<const Choice extends string>(...choices: Choice[]): ValueKind<Choice> {
  return {
    sample: choices.join("|"),
    read: (text) => {
      const found = choices.find((choice) => choice === text)
      return found === undefined ? err(`one of ${choices.join(", ")}`) : ok(found)
    },
  }
}

/** `true` or `false`; the environment's 1/0, yes/no and on/off as well. */
export const booleanValue: ValueKind<boolean> = {
  sample: "true|false",
  read: (text) => {
    const word = text.toLowerCase()
    if (["true", "1", "yes", "on"].includes(word)) return ok(true)
    if (["false", "0", "no", "off"].includes(word)) return ok(false)
    return err("true or false")
  },
}

/** A whole number in [least, most]. */
export function integerValue(least: number, most: number = Number.MAX_SAFE_INTEGER): ValueKind<number> {
  const expected = most === Number.MAX_SAFE_INTEGER ? `a whole number from ${least}` : `a whole number ${least}–${most}`
  return {
    sample: "N",
    read: (text) => {
      const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN
      return Number.isSafeInteger(value) && value >= least && value <= most ? ok(value) : err(expected)
    },
  }
}

/** A count that may be written with a suffix: k, m, g, t are powers of 1000, K, M, G, T of 1024; `25.6k` is 25600. */
export function countValue(least: number): ValueKind<number> {
  return {
    sample: "N",
    read: (text) => {
      const value = readCount(text)
      const expected = `a whole number from ${least}; 8k is 8000, 8K is 8192`
      return value !== null && value >= least ? ok(value) : err(expected)
    },
  }
}

/** The window: a count of at least 1, or null for `auto` and -1 (vLLM's --max-model-len). */
export const windowValue: ValueKind<number | null> = {
  sample: "N|auto",
  read: (text) => {
    if (text === "auto" || text === "-1") return ok(null)
    const value = readCount(text)
    return value !== null && value >= 1 ? ok(value) : err("auto, -1, or a whole number from 1; 8k is 8000, 8K is 8192")
  },
}

/** A time from 0, as long as timers reach. `unitMs` is 1 for milliseconds and 1000 for seconds. */
export function durationValue(unitMs: number): ValueKind<number> {
  const most = Math.floor(timerMsMax / unitMs)
  return {
    sample: unitMs === 1 ? "MS" : "SECONDS",
    read: (text) => {
      const value = /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN
      return value <= most ? ok(value) : err(`a number 0–${most}`)
    },
  }
}

/** A JSON object. */
export const jsonObjectValue: ValueKind<{ [name: string]: Json }> = {
  sample: "JSON",
  read: (text) => {
    const value = readJson(text)
    return isJsonObject(value) ? ok(value) : err("a JSON object")
  },
}

/** A JSON object whose values are all strings. */
export const jsonStringMapValue: ValueKind<{ [name: string]: string }> = {
  sample: "JSON",
  read: (text) => {
    const value = readJson(text)
    if (!isJsonObject(value)) return err("a JSON object of strings")
    const strings: { [name: string]: string } = {}
    for (const [name, entry] of Object.entries(value)) {
      if (typeof entry !== "string") return err("a JSON object of strings")
      strings[name] = entry
    }
    return ok(strings)
  },
}

/** A JSON list of strings, as vLLM takes for the CORS flags. */
export const jsonStringsValue: ValueKind<string[]> = {
  sample: "JSON",
  read: (text) => {
    const value = readJson(text)
    if (!Array.isArray(value)) return err('a JSON list of strings, such as ["*"]')
    const strings = value.filter((entry) => typeof entry === "string")
    return strings.length === value.length ? ok(strings) : err('a JSON list of strings, such as ["*"]')
  },
}

/** Some of a few words, with commas between them; `none` and `all` stand for themselves. */
export function someOfValue<const Word extends string>(words: readonly Word[]): ValueKind<Word[]> {
  const expected = `none, all, or some of ${words.join(", ")}, with commas between`
  return {
    sample: "none|all|NAME,NAME",
    read: (text) => {
      if (text === "none") return ok([])
      if (text === "all") return ok([...words])
      const named = text.split(",").map((each) => each.trim())
      const known = words.filter((word) => named.includes(word))
      return named.every((each) => words.some((word) => word === each)) ? ok(known) : err(expected)
    },
  }
}

/** Paths with commas between them, each starting with a slash. */
export const pathListValue: ValueKind<string[]> = {
  sample: "PATH,PATH",
  read: (text) => {
    const paths = text.split(",").map((path) => path.trim())
    return paths.every((path) => path.startsWith("/")) ? ok(paths) : err("paths that start with /, with commas between")
  },
}

/** A proxy's prefix: empty, or a path that starts with a slash. A slash at the end is dropped. */
export const rootPathValue: ValueKind<string> = {
  sample: "PATH",
  read: (text) =>
    text === "" || /^\/[^?#\s]*$/.test(text) ? ok(text.replace(/\/+$/, "")) : err("a path that starts with /"),
}

/** A host name, IPv4 or IPv6 address to listen on; brackets around the last are dropped. */
export const addressValue: ValueKind<string> = {
  sample: "HOST",
  read: (text) => {
    const bare = /^\[[\da-fA-F:.]+\]$/.test(text) ? text.slice(1, -1) : text
    return isIPv6(bare) || /^[\w.-]+$/.test(bare) ? ok(bare) : err("a host name or address, without scheme and port")
  },
}

/** A command line, as words. */
export const commandValue: ValueKind<readonly string[]> = {
  sample: "COMMAND",
  read: (text) => {
    const words = splitShellWords(text)
    if (!words.ok) return words
    return words.value[0] ? words : err("a command and its arguments")
  },
}

/** vLLM's structured outputs as JSON. Gives the back end, or null where the JSON leaves it open. */
export const structuredOutputsValue: ValueKind<StructuredOutputsBackend | null> = {
  sample: "JSON",
  read: (text) => {
    const value = readJson(text)
    if (!isJsonObject(value)) return err("a JSON object")
    if (value.backend === undefined) return ok(null)
    const backend = structuredOutputsBackends.find((each) => each === value.backend)
    return backend === undefined ? err(`a backend out of ${structuredOutputsBackends.join(", ")}`) : ok(backend)
  },
}

const loraForm = 'NAME=PATH or {"name": …, "path": …, "base_model_name": …}'

/**
 * Adapters in vLLM's two forms, and as a JSON list of the second. As in vLLM, a text with `=` and without a comma is the
 * first form.
 */
export const loraModulesValue: ValueKind<readonly LoraModule[]> = {
  sample: "NAME=PATH|JSON",
  read: (text) => {
    const equals = text.indexOf("=")
    if (equals !== -1 && !text.includes(",") && !/^\s*[[{]/.test(text)) {
      const name = text.slice(0, equals)
      const path = text.slice(equals + 1)
      if (name === "" || path === "") return err(loraForm)
      return ok([{ name, path, baseModelName: null, is3dWeight: false }])
    }
    const value = readJson(text)
    const modules: LoraModule[] = []
    for (const entry of Array.isArray(value) ? value : [value]) {
      const module = isJsonObject(entry) ? readLoraModule(entry) : null
      if (module === null) return err(loraForm)
      modules.push(module)
    }
    return ok(modules)
  },
}

function readLoraModule(entry: { readonly [key: string]: Json }): LoraModule | null {
  const { name, path, base_model_name: base = null, is_3d_lora_weight: is3dWeight = false, ...rest } = entry
  if (typeof name !== "string" || name === "" || typeof path !== "string" || path === "") return null
  if ((base !== null && typeof base !== "string") || typeof is3dWeight !== "boolean") return null
  return Object.keys(rest).length > 0 ? null : { name, path, baseModelName: base, is3dWeight }
}

function readCount(text: string): number | null {
  const match = /^(\d{1,16}(?:\.\d{1,9})?)([kKmMgGtT]?)$/.exec(text)
  if (match === null) return null
  const digits = match[1]!
  const suffix = match[2]!
  // A fraction has a meaning only with the decimal suffixes, as in vLLM.
  if (digits.includes(".") && !/[kmgt]/.test(suffix)) return null
  const power = suffix === "" ? 0 : "kmgt".indexOf(suffix.toLowerCase()) + 1
  const value = Number(digits) * (suffix === suffix.toLowerCase() ? 1000 : 1024) ** power
  const whole = digits.includes(".") ? Math.floor(value + 1e-6) : value
  return Number.isSafeInteger(whole) ? whole : null
}

function readJson(text: string): Json | undefined {
  const read = parseJsonText(text, jsonDepthMax)
  return read.ok ? read.value : undefined
}

function isJsonObject(value: Json | undefined): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}
