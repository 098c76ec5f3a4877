/**
 * What a flag is, and the few ways to make one: each ties a name to a kind of value and a field of the configuration.
 * The flags themselves stand in `flags-table.ts`.
 */
import { type Config, defaultConfig } from "./config"
import { booleanValue, type ValueKind } from "./flags-values"
import { err, ok, type Result } from "./result"

type Writable<Value> = { -readonly [Key in keyof Value]: Value[Key] }

/** A `Config` being filled, with what must be looked at again once all flags are known. */
export interface Draft extends Omit<Writable<Config>, "cors" | "limits" | "simulator" | "http" | "vllm"> {
  cors: Writable<Config["cors"]>
  limits: Writable<Config["limits"]>
  simulator: Writable<Config["simulator"]>
  http: Writable<Config["http"]>
  vllm: Omit<Writable<Config["vllm"]>, "restart"> & { restart: Writable<Config["vllm"]["restart"]> }
  engineChoice: "auto" | Config["engine"]
  /** `--engine-command` as words; null = not given. */
  engineCommandWords: readonly string[] | null
  /** Engines to start here; null = not given. */
  dataParallelSizeLocal: number | null
  /** Words for the command line of an engine that we start, from flags that are the engine's too. */
  engineArguments: string[]
  /** `--chat-template` as written: a path or the template itself. */
  chatTemplateSource: string | null
  /** `--tokenizer-cache` as written: a folder, `off`, or null = not given. */
  tokenizerCacheChoice: string | null
  /** `--engine-records` as written, alike. */
  engineRecordsChoice: string | null
  sslKeyFile: string | null
  sslCertFile: string | null
  sslCaFile: string | null
}

/** A fresh draft that holds the defaults. */
export function emptyDraft(): Draft {
  return {
    ...defaultConfig,
    cors: { ...defaultConfig.cors },
    limits: { ...defaultConfig.limits },
    simulator: { ...defaultConfig.simulator },
    http: { ...defaultConfig.http },
    vllm: { ...defaultConfig.vllm, restart: { ...defaultConfig.vllm.restart } },
    engineChoice: "auto",
    engineCommandWords: null,
    dataParallelSizeLocal: null,
    engineArguments: [],
    chatTemplateSource: null,
    tokenizerCacheChoice: null,
    engineRecordsChoice: null,
    sslKeyFile: null,
    sslCertFile: null,
    sslCaFile: null,
  }
}

/** Headings of the help text, in its order. */
export const flagGroups = [
  "model",
  "server",
  "security",
  "prompts",
  "parsers",
  "replies",
  "logging",
  "limits",
  "engine",
  "simulator",
] as const
/** One of the headings. */
export type FlagGroup = (typeof flagGroups)[number]

/** A text that a flag does not take, and the end of "expected …". */
export interface BadValue {
  readonly text: string
  readonly expected: string
}

/** One flag. `apply` reads the texts given for it and writes the draft, or says what was expected. */
export interface Flag {
  /** Words with dashes between, without the two in front. */
  readonly name: string
  readonly group: FlagGroup
  /** `switch` = needs no value; `one` = the last value counts; `many` = several values, and repeatable. */
  readonly arity: "switch" | "one" | "many"
  /** Stands for the value in the help text. */
  readonly sample: string
  readonly help: string
  /** As the help text shows it, with its unit. */
  readonly defaultText: string
  /** Variables that count where neither command line nor config file gives the flag; the first that is set wins. */
  readonly env: readonly string[]
  /** vLLM's short spelling, without its dash; "" = none. */
  readonly short: string
  /** Whether an engine that we start gets the flag: never, as well as Sluice (`too`), or it alone. */
  readonly forEngine: "no" | "too" | "alone"
  apply(draft: Draft, texts: readonly string[]): Result<null, BadValue>
}

/** A flag as it was given. */
export interface GivenFlag {
  readonly flag: Flag
  /** Where it was written, for messages: `--port`, or the file and key, or the variable. */
  readonly shown: string
  readonly texts: string[]
}

interface Words {
  readonly unit?: string
  /** Shown as the default when the field's own default says too little (null, "", []). */
  readonly unset?: string
  readonly env?: readonly string[]
  readonly short?: string
  readonly forEngine?: "too"
}

function defaultText(value: unknown, words: Words): string {
  const shown = words.unset ?? (typeof value === "string" ? value : JSON.stringify(value))
  return words.unit === undefined ? shown : `${shown} ${words.unit}`
}

/** Any flag with one value: `set` says where it lands. */
export function build<Value>(
  group: FlagGroup,
  name: string,
  kind: ValueKind<Value>,
  help: string,
  fallback: unknown,
  words: Words,
  set: (draft: Draft, value: Value) => void,
): Flag {
  return {
    name,
    group,
    // A switch that is on by default only makes sense with its word.
    arity: kind.sample === booleanValue.sample && fallback !== true ? "switch" : "one",
    sample: kind.sample,
    help,
    defaultText: defaultText(fallback, words),
    env: words.env ?? [],
    short: words.short ?? "",
    forEngine: words.forEngine ?? "no",
    apply: (draft, texts) => {
      const text = texts.at(-1) ?? ""
      const value = kind.read(text)
      if (!value.ok) return err({ text, expected: value.error })
      set(draft, value.value)
      if (words.forEngine !== undefined) draft.engineArguments.push(`--${name}=${text}`)
      return ok(null)
    },
  }
}

/** A flag that sets one field of the draft. */
export function one<Key extends keyof Draft, Value extends Draft[Key]>(
  group: FlagGroup,
  name: string,
  kind: ValueKind<Value>,
  key: Key,
  help: string,
  words: Words = {},
): Flag {
  return build(group, name, kind, help, emptyDraft()[key], words, (draft, value) => {
    draft[key] = value
  })
}

/** A switch whose vLLM name says the opposite of the field. */
export function inverted(group: FlagGroup, name: string, key: "docs" | "accessLog", help: string): Flag {
  return build(group, name, booleanValue, help, !defaultConfig[key], {}, (draft, value) => {
    draft[key] = !value
  })
}

/** Makes flags that set one field of a section of the draft. */
function sectionFlags<Fields extends object>(group: FlagGroup, section: (draft: Draft) => Fields) {
  return <Key extends keyof Fields, Value extends Fields[Key]>(
    name: string,
    kind: ValueKind<Value>,
    key: Key,
    help: string,
    words: Words = {},
  ): Flag =>
    build(group, name, kind, help, section(emptyDraft())[key], words, (draft, value) => {
      section(draft)[key] = value
    })
}

/** A flag of the CORS rules. */
export const cors = sectionFlags("security", (draft) => draft.cors)

/** A flag that bounds what comes from outside. */
export const limit = sectionFlags("limits", (draft) => draft.limits)

/** A flag of the simulator engine. */
export const pace = sectionFlags("simulator", (draft) => draft.simulator)

/** A flag of the link to vLLM's engines. */
export const link = sectionFlags("engine", (draft) => draft.vllm)

/** A flag of the link to engines behind HTTP. */
export const remote = sectionFlags("engine", (draft) => draft.http)

/** A flag with several values, none of them empty. */
export function many(
  group: FlagGroup,
  name: string,
  sample: string,
  key: "servedModelNames" | "apiKeys",
  help: string,
  words: Words,
): Flag {
  return {
    name,
    group,
    arity: "many",
    sample: `${sample} …`,
    help,
    defaultText: defaultText([], words),
    env: words.env ?? [],
    short: "",
    forEngine: "no",
    apply: (draft, texts) => {
      if (texts.length === 0) return err({ text: "", expected: "at least one value" })
      const empty = texts.find((text) => text === "")
      if (empty !== undefined) return err({ text: empty, expected: "a text that is not empty" })
      draft[key] = [...new Set(texts)]
      return ok(null)
    },
  }
}

/**
 * A flag that only an engine knows: its words go on to an engine that we start, unread. `off` is how a switch that was
 * turned off is written; null = it is left out.
 */
export function passedOn(name: string, arity: Flag["arity"], off: string | null): Flag {
  return {
    name,
    group: "engine",
    arity,
    sample: "VALUE",
    help: "",
    defaultText: "the engine's",
    env: [],
    short: "",
    forEngine: "alone",
    apply: (draft, texts) => {
      const text = texts.at(-1) ?? ""
      if (arity === "many") draft.engineArguments.push(`--${name}`, ...texts)
      else if (arity === "one") draft.engineArguments.push(`--${name}=${text}`)
      else {
        const on = booleanValue.read(text)
        if (!on.ok) return err({ text, expected: on.error })
        const word = on.value ? `--${name}` : off
        if (word !== null) draft.engineArguments.push(word)
      }
      return ok(null)
    },
  }
}

/** A flag of vLLM whose effect is always there: taken with its one value, refused otherwise. */
export function always(group: FlagGroup, name: string, value: string, help: string): Flag {
  return {
    name,
    group,
    arity: value === "true" ? "switch" : "one",
    sample: value === "true" ? booleanValue.sample : value,
    help,
    defaultText: `always ${value === "true" ? "on" : value}`,
    env: [],
    short: "",
    forEngine: "no",
    apply: (_, texts) => {
      const text = texts.at(-1) ?? ""
      return text.toLowerCase() === value
        ? ok(null)
        : err({ text, expected: `${value}; the rest is not supported yet` })
    },
  }
}
