import type { CallForm } from "./call-tag"
import { type ContentMachine, markerStart } from "./content"
import type { Emission } from "./emission"
import { isJsonSpace, JsonScanner } from "./json-scanner"
import type { Vocabulary } from "./parser"
import { PartialText } from "./partial"

/** How a family wraps calls that are JSON objects. */
export interface JsonCallGrammar {
  readonly start: string
  readonly end: string
  /** Text before the start marker that belongs to the template's framing; dropped when it is there exactly so. */
  readonly beforeStart: string
  readonly nameKey: string
  /** Spellings of the arguments' key. */
  readonly argumentKeys: readonly string[]
  /** What a grammar for calls allows of all that. */
  readonly forms: readonly CallForm[]
}

/** A grammar with its markers' ids; both are -1 where the vocabulary lacks one, and text is matched instead. */
export interface ResolvedCallGrammar {
  readonly grammar: JsonCallGrammar
  readonly startId: number
  readonly endId: number
}

/** Looks the markers up. */
export function resolveCallGrammar(grammar: JsonCallGrammar, vocabulary: Vocabulary): ResolvedCallGrammar {
  const startId = vocabulary.tokenToId(grammar.start)
  const endId = vocabulary.tokenToId(grammar.end)
  const both = startId >= 0 && endId >= 0
  return { grammar, startId: both ? startId : -1, endId: both ? endId : -1 }
}

/** UTF-16 units of a function's name, quotes included; a longer one is no call. */
const nameUnitsMax = 512
/** UTF-16 units of a key of the call object. */
const keyUnitsMax = 128
/** UTF-16 units held before the name is known (arguments may come first). */
const heldUnitsMax = 4 * 1024 * 1024

const State = {
  text: 0,
  beforeObject: 1,
  beforeKey: 2,
  key: 3,
  afterKey: 4,
  beforeValue: 5,
  name: 6,
  arguments: 7,
  other: 8,
  afterValue: 9,
  afterObject: 10,
  off: 11,
} as const
type State = (typeof State)[keyof typeof State]

/**
 * Calls as JSON objects between markers:
 * `Hold on.\n<tool_call>\n{"name": "book", "arguments": {"seat": "4C"}}\n</tool_call>` gives the text `Hold on.` and the
 * call book with `{"seat": "4C"}`, unchanged.
 *
 * White space between the markers and the object is framing, and so is `beforeStart` before a start marker; all other
 * text stays as it is; what white space between calls means is decided further up (generate/items.ts).
 * Keys may come in any order: arguments before the name wait for it. Other keys are skipped. A call without arguments
 * has none. What is no call becomes text, and everything behind it as well: the machine is off from then on.
 */
export class JsonCallMachine implements ContentMachine {
  private state: State = State.text
  private readonly grammar: JsonCallGrammar
  private readonly startId: number
  private readonly endId: number
  private readonly matchesText: boolean
  private readonly emission: Emission
  private readonly before: PartialText
  private readonly startText: PartialText
  private readonly endText: PartialText
  private readonly beforeUnit: number
  private readonly startUnit: number
  private readonly scanner = new JsonScanner()
  /** Everything since the call began, until its name is given out: what becomes text if there is no call. */
  private raw = ""
  /** The key or name being read, with its quotes. */
  private word = ""
  private escaped = false
  private named = false
  private hasArguments = false
  /** Arguments that came before the name. */
  private early = ""

  constructor(resolved: ResolvedCallGrammar, emission: Emission) {
    const { grammar } = resolved
    this.grammar = grammar
    this.startId = resolved.startId
    this.endId = resolved.endId
    this.matchesText = resolved.startId < 0
    this.emission = emission
    this.before = new PartialText(grammar.beforeStart)
    this.startText = new PartialText(grammar.start)
    this.endText = new PartialText(grammar.end)
    this.beforeUnit = grammar.beforeStart === "" ? -1 : grammar.beforeStart.charCodeAt(0)
    this.startUnit = this.matchesText ? grammar.start.charCodeAt(0) : -1
  }

  get busy(): boolean {
    return this.state !== State.text && this.state !== State.off
  }

  /** Something was no call: all that follows is text. */
  get isOff(): boolean {
    return this.state === State.off
  }

  /** Hot (bench/fold.ts). */
  token(id: number, text: string, start: number, end: number): void {
    if (this.matchesText || this.state === State.off || this.inString) this.read(text, start, end)
    else if (id === this.startId) this.open(text, start, end)
    else if (id === this.endId && this.state !== State.text) this.close(text, start, end)
    else this.read(text, start, end)
  }

  settle(): void {
    if (this.state !== State.text) return
    this.emission.text(this.before.held + this.startText.held)
    this.before.reset()
    this.startText.reset()
  }

  /** Before its name is out a call is given back as text; afterwards it stays as far as it came. */
  finish(): void {
    if (this.state === State.text) this.settle()
    else if (this.busy && !this.named) this.emission.text(this.raw)
    // The object was whole: only its end marker is missing.
    else if (this.state === State.afterObject) this.emission.callEnd()
    this.raw = ""
    this.early = ""
    this.state = State.off
  }

  /** Whether markers are only characters now. */
  private get inString(): boolean {
    switch (this.state) {
      case State.key:
      case State.name:
        return true
      case State.arguments:
      case State.other:
        return this.scanner.inString
      default:
        return false
    }
  }

  private get inValue(): boolean {
    return this.state === State.arguments || this.state === State.other
  }

  /** All parts of the call are there, though its last brace may not be: models forget it, and nothing else is lost. */
  private get isWhole(): boolean {
    return this.named && (this.state === State.afterValue || this.state === State.afterObject)
  }

  /** The start marker's token, outside of strings. */
  private open(text: string, start: number, end: number): void {
    const at = markerStart(text, start, end, this.grammar.start)
    if (at > start) this.read(text, start, at)
    if (this.isWhole) this.end()
    if (this.state === State.text) this.begin(text.slice(at, end))
    else this.fail(text, at, at, end)
  }

  /** The end marker's token inside a call and outside of strings. */
  private close(text: string, start: number, end: number): void {
    const at = markerStart(text, start, end, this.grammar.end)
    if (at > start) this.read(text, start, at)
    if (this.isWhole) this.end()
    else this.fail(text, at, at, end)
  }

  private begin(marker: string): void {
    // Complete framing is dropped; a part of it was text.
    const framing = this.before.held
    if (this.before.complete) this.raw = framing + marker
    else {
      this.emission.text(framing)
      this.raw = marker
    }
    this.before.reset()
    this.startText.reset()
    this.endText.reset()
    this.early = ""
    this.named = false
    this.hasArguments = false
    this.state = State.beforeObject
  }

  private end(): void {
    this.emission.callEnd()
    this.state = State.text
  }

  /**
   * No call, or no longer one. What was given out stays; the rest is text, from `unnamedFrom` on behind all that was
   * held, or from `namedFrom` on when the name is out. Text from here to the end of the sequence stays text.
   */
  private fail(text: string, unnamedFrom: number, namedFrom: number, end: number): void {
    if (this.named) {
      const rest = this.endText.held + text.slice(namedFrom, end)
      if (this.isWhole) this.emission.callEnd()
      this.emission.text(rest)
    } else {
      this.emission.text(this.raw + text.slice(unnamedFrom, end))
    }
    this.raw = ""
    this.early = ""
    this.state = State.off
  }

  /** Reads text in any state, from state to state. */
  private read(text: string, start: number, end: number): void {
    let at = start
    while (at < end) {
      if (this.state === State.off) {
        this.emission.text(text.slice(at, end))
        return
      }
      at = this.state === State.text ? this.readText(text, at, end) : this.readCall(text, at, end)
    }
  }

  /** Text outside calls. Gives where a call began (behind a marker found in the text), or `end`. */
  private readText(text: string, start: number, end: number): number {
    let i = start
    while (i < end) {
      if (this.before.matched === 0 && this.startText.matched === 0) {
        const from = i
        while (i < end && !this.mayBegin(text.charCodeAt(i))) i += 1
        if (i > from) this.emission.text(text.slice(from, i))
        if (i === end) return end
      }
      const unit = text.charCodeAt(i)
      i += 1
      if (this.startText.matched === 0 && unit !== this.startUnit) {
        this.showUnlessFraming(text, i - 1)
        continue
      }
      const seen = this.startText.held + text.charAt(i - 1)
      const released = this.startText.step(unit)
      if (this.startText.complete) {
        this.begin(this.grammar.start)
        return i
      }
      for (let k = 0; k < released; k++) this.showUnlessFraming(seen, k)
    }
    return end
  }

  private mayBegin(unit: number): boolean {
    return unit === this.beforeUnit || unit === this.startUnit
  }

  /** One unit that belongs to no marker: text, unless it may be framing before one. */
  private showUnlessFraming(text: string, at: number): void {
    if (this.beforeUnit < 0) {
      this.emission.text(text.charAt(at))
      return
    }
    const seen = this.before.held + text.charAt(at)
    const released = this.before.step(text.charCodeAt(at))
    if (released > 0) this.emission.text(seen.slice(0, released))
  }

  /** A call's own text. Gives where the call ended, or `end`. */
  private readCall(text: string, start: number, end: number): number {
    let i = start
    while (i < end) {
      const unit = text.charCodeAt(i)
      switch (this.state) {
        case State.key:
        case State.name:
          if (!this.readWord(text.charAt(i), unit)) return this.failed(text, start, i, end)
          i += 1
          break
        case State.arguments:
        case State.other:
          i = this.readValue(text, i, end)
          break
        case State.afterObject:
          if (this.endText.matched === 0 && isJsonSpace(unit)) {
            i += 1
            break
          }
          if (!this.matchesText || unit !== this.grammar.end.charCodeAt(this.endText.matched)) {
            return this.failed(text, start, i, end)
          }
          this.endText.matched += 1
          i += 1
          if (this.endText.complete) {
            this.end()
            return i
          }
          break
        default:
          if (isJsonSpace(unit)) {
            i += 1
            break
          }
          if (!this.readSign(unit)) return this.failed(text, start, i, end)
          // The first unit of a value is read by the value's own state.
          if (!this.inValue) i += 1
      }
    }
    if (this.named) return end
    this.raw += text.slice(start, end)
    return this.raw.length > heldUnitsMax ? this.failed(text, end, end, end) : end
  }

  private failed(text: string, unnamedFrom: number, namedFrom: number, end: number): number {
    this.fail(text, unnamedFrom, namedFrom, end)
    return end
  }

  /** A sign between the parts of the object; false when another one had to stand here. */
  private readSign(unit: number): boolean {
    switch (this.state) {
      case State.beforeObject:
        this.state = State.beforeKey
        return unit === 0x7b
      case State.beforeKey:
        if (unit === 0x22) return this.beginWord(State.key)
        return unit === 0x7d && this.closeObject()
      case State.afterKey:
        this.state = State.beforeValue
        return unit === 0x3a
      case State.beforeValue:
        return this.beginValue(unit)
      case State.afterValue:
        if (unit === 0x7d) return this.closeObject()
        if (unit !== 0x2c) return false
        this.state = State.beforeKey
        return true
      default:
        return false
    }
  }

  private closeObject(): boolean {
    this.state = State.afterObject
    return this.named
  }

  private beginWord(state: State): boolean {
    this.state = state
    this.word = '"'
    this.escaped = false
    return true
  }

  private beginValue(unit: number): boolean {
    const key = this.word.slice(1, -1)
    if (key === this.grammar.nameKey && !this.named) return unit === 0x22 && this.beginWord(State.name)
    const isArguments = !this.hasArguments && this.grammar.argumentKeys.includes(key)
    this.state = isArguments ? State.arguments : State.other
    if (isArguments) this.hasArguments = true
    this.scanner.reset()
    return true
  }

  /** One unit of a key or a name; false when it is too long or no JSON text. */
  private readWord(char: string, unit: number): boolean {
    this.word += char
    if (this.escaped) this.escaped = false
    else if (unit === 0x5c) this.escaped = true
    else if (unit === 0x22) {
      if (this.state === State.name) return this.giveName()
      this.state = State.afterKey
      return true
    }
    return this.word.length <= (this.state === State.name ? nameUnitsMax : keyUnitsMax)
  }

  private giveName(): boolean {
    const name = readString(this.word)
    if (name === "") return false
    this.named = true
    this.state = State.afterValue
    this.raw = ""
    this.emission.callStart(name, "")
    this.emission.callArguments(this.early)
    this.early = ""
    return true
  }

  /** Arguments go out as they come, or wait for the name; other values are skipped. Gives where reading stopped. */
  private readValue(text: string, start: number, end: number): number {
    const at = this.scanner.scan(text, start, end)
    if (this.state === State.arguments) {
      if (this.named) this.emission.callArguments(text.slice(start, at))
      else this.early += text.slice(start, at)
    }
    if (this.scanner.done) this.state = State.afterValue
    return at
  }
}

/** A JSON string's text; "" when it is none. */
function readString(quoted: string): string {
  try {
    const value: unknown = JSON.parse(quoted)
    return typeof value === "string" ? value : ""
  } catch {
    return ""
  }
}
