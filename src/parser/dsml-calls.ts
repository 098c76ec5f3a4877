import { type ContentMachine, markerStart } from "./content"
import type { Emission } from "./emission"
import { frameTail } from "./partial"

/** The token inside every tag, which alone makes it one. */
export const dsmlMarker = "｜DSML｜"

/** Names of the tags in one version of the format. */
export interface DsmlTagNames {
  /** Around all calls of a reply; what models were seen to write in its place may follow. */
  readonly calls: readonly string[]
  readonly call: string
  readonly parameter: string
}

/** UTF-16 units of one call, frame included; a longer one is no call. */
const callUnitsMax = 4 * 1024 * 1024

/** More units than any tag's name has. */
const tagUnitsMax = 64

const State = { text: 0, opening: 1, calls: 2, off: 3 } as const
type State = (typeof State)[keyof typeof State]

/** What may belong to the frame before the first tag's marker: up to two line breaks and a bracket. */
export const dsmlFrame = "\n\n<"

/**
 * Calls in DeepSeek's tags, each parameter with its own:
 * `Hold on.⏎⏎<｜DSML｜function_calls>⏎<｜DSML｜invoke name="book">⏎<｜DSML｜parameter name="seat" string="true">4C</｜DSML｜parameter>⏎</｜DSML｜invoke>⏎</｜DSML｜function_calls>`
 * gives the text `Hold on.` and the call book with `{"seat":"4C"}`.
 *
 * A tag is one only where its `｜DSML｜` is the token. A call comes out when it is whole, since its parameters become one
 * JSON object: texts as strings, all else as the JSON that it is, or as a string where it is none. What is no call
 * becomes text, and everything behind it as well. Source: PARSERS 4.7.
 */
export class DsmlCallMachine implements ContentMachine {
  private state: State = State.text
  private readonly tags: DsmlTagNames
  private readonly markerId: number
  private readonly emission: Emission
  /** In text: what may be the frame's beginning. In calls: everything since the last one. */
  private raw = ""
  /** Where tokens of the marker stand in `raw`. */
  private marks: number[] = []
  /** The last units of `raw`, and what stands behind its last mark: it is long, and only made to be read once. */
  private ending = ""
  private tag = ""
  /** The last mark is that of a closing tag. */
  private closes = false
  /** A call has come out of the block that is open. */
  private hasCalled = false

  constructor(tags: DsmlTagNames, markerId: number, emission: Emission) {
    this.tags = tags
    this.markerId = markerId
    this.emission = emission
  }

  get busy(): boolean {
    return this.state === State.opening || this.state === State.calls
  }

  /** Hot (bench/fold.ts). */
  token(id: number, text: string, start: number, end: number): void {
    if (id !== this.markerId || this.state === State.off) {
      this.read(text, start, end)
      return
    }
    const at = markerStart(text, start, end, dsmlMarker)
    if (at > start) this.read(text, start, at)
    if (this.state === State.text && this.raw.endsWith("<")) {
      this.state = State.opening
      this.hasCalled = false
    }
    if (!this.busy) {
      this.read(text, at, end)
      return
    }
    this.closes = this.ending === "</"
    this.ending = ""
    this.tag = ""
    this.marks.push(this.raw.length)
    this.raw += text.slice(at, end)
  }

  settle(): void {
    if (this.state === State.text) this.giveRaw()
  }

  /** A call that is not whole is given back as text, and so is a block without calls; a block's missing end is not missed. */
  finish(): void {
    if (this.state === State.calls && this.hasCalled && this.raw.trim() === "") this.raw = ""
    this.giveRaw()
    this.state = State.off
  }

  private giveRaw(): void {
    if (this.raw !== "") this.emission.text(this.raw)
    this.clear()
  }

  private clear(): void {
    this.raw = ""
    this.marks = []
    this.ending = ""
    this.tag = ""
    this.closes = false
  }

  /** No call, or no longer one: text from here to the end of the sequence. */
  private fail(): void {
    this.giveRaw()
    this.state = State.off
  }

  private read(text: string, start: number, end: number): void {
    let at = start
    while (at < end) {
      switch (this.state) {
        case State.text:
          this.readText(text, at, end)
          return
        case State.off:
          this.emission.text(text.slice(at, end))
          return
        default:
          at = this.readTag(text, at, end)
      }
    }
  }

  /** Gives out text but for its end, as far as that may be the frame's beginning. */
  private readText(text: string, start: number, end: number): void {
    const seen = this.raw + text.slice(start, end)
    const held = frameTail(seen, dsmlFrame)
    if (held < seen.length) this.emission.text(seen.slice(0, seen.length - held))
    this.raw = seen.slice(seen.length - held)
  }

  /** Reads to the end of a tag, if there is one. Gives where it stopped. */
  private readTag(text: string, start: number, end: number): number {
    const bracket = text.indexOf(">", start)
    const stop = bracket < 0 || bracket >= end ? end : bracket + 1
    const part = text.slice(start, stop)
    this.raw += part
    this.ending = (this.ending + part).slice(-"</".length)
    if (this.tag.length <= tagUnitsMax) this.tag += part
    if (this.raw.length > callUnitsMax) this.fail()
    else if (this.state === State.opening) this.checkOpening()
    else if (stop === bracket + 1) this.checkTag()
    return stop
  }

  /** Whether the first tag is, or may still become, that of calls. */
  private checkOpening(): void {
    const { tag } = this
    const isOnly = this.marks.length === 1 && this.tags.calls.some((each) => `${each}>`.startsWith(tag))
    if (!isOnly) this.fail()
    else if (tag.endsWith(">")) this.state = State.calls
  }

  /** A tag ended: perhaps a call did, or all of them. */
  private checkTag(): void {
    const { calls, call } = this.tags
    if (this.endsWith(call)) {
      const found = new CallReader(this.raw, this.marks, this.tags).read()
      if (found === "unfinished") return
      if (found === null) {
        this.fail()
        return
      }
      this.emission.callStart(found.name, "")
      this.emission.callArguments(found.argumentsText)
      this.emission.callEnd()
      this.hasCalled = true
      this.clear()
    } else if (calls.some((name) => this.endsWith(name))) {
      const isEmpty = this.raw.slice(0, this.marks.at(-1)! - "</".length).trim() === ""
      if (!this.hasCalled || !isEmpty) {
        this.fail()
        return
      }
      this.clear()
      this.state = State.text
    }
  }

  /** Whether a closing tag of that name ends here. */
  private endsWith(name: string): boolean {
    return this.closes && this.tag === `${name}>`
  }
}

/** A call as it comes out. */
interface DsmlCall {
  readonly name: string
  readonly argumentsText: string
}

/** Reads one call from the block's or its own first tag to its last. */
class CallReader {
  private readonly raw: string
  private readonly marks: readonly number[]
  private readonly tags: DsmlTagNames
  private at = 0
  /** Index of the first mark that is not behind us. */
  private mark = 0

  constructor(raw: string, marks: readonly number[], tags: DsmlTagNames) {
    this.raw = raw
    this.marks = marks
    this.tags = tags
  }

  /** The call; null where it is none, `unfinished` where its last tag is part of a parameter's text. */
  read(): DsmlCall | "unfinished" | null {
    const { calls, call, parameter } = this.tags
    const block = calls.find((name) => this.isTag("<", `${name}>`))
    if (block !== undefined) this.pass(`<${dsmlMarker}${block}>`)
    if (!this.isTag("<", `${call} name="`)) return null
    this.pass(`<${dsmlMarker}${call} name="`)
    const nameEnd = this.raw.indexOf('">', this.at)
    const name = this.raw.slice(this.at, nameEnd)
    if (nameEnd < 0 || name.trim() === "" || this.marks[this.mark]! < nameEnd) return null
    this.at = nameEnd + '">'.length
    const members: string[] = []
    while (!this.isTag("</", `${call}>`)) {
      if (!this.isTag("<", `${parameter} name="`)) return null
      this.pass(`<${dsmlMarker}${parameter}`)
      const member = this.readParameter()
      if (typeof member !== "object" || member === null) return member
      members.push(member.text)
    }
    return { name, argumentsText: `{${members.join(",")}}` }
  }

  /** One parameter as a member of an object. It ends with its own tag, or where the next one begins. */
  private readParameter(): { readonly text: string } | "unfinished" | null {
    const head = /\s+name="([^"]+)"(?:\s+string="([^"]*)")?\s*>/y
    head.lastIndex = this.at
    const found = head.exec(this.raw)
    if (found === null) return null
    const from = head.lastIndex
    const { parameter } = this.tags
    for (; this.mark < this.marks.length; this.mark++) {
      const mark = this.marks[this.mark]!
      const behind = mark + dsmlMarker.length
      const closes = this.raw.startsWith("</", mark - 2) && this.raw.startsWith(`${parameter}>`, behind)
      const isNext = this.raw.startsWith("<", mark - 1) && this.raw.startsWith(`${parameter} name="`, behind)
      if (mark <= from || !(closes || isNext)) continue
      const value = this.raw.slice(from, mark - (closes ? 2 : 1))
      if (closes) this.mark += 1
      this.at = closes ? behind + parameter.length + 1 : mark - 1
      const written = found[2] === "true" ? JSON.stringify(value) : jsonOf(value)
      return { text: `${JSON.stringify(found[1])}:${written}` }
    }
    return "unfinished"
  }

  /** Whether the next thing, behind white space, is a tag: `opening`, the marker's token, `rest`. */
  private isTag(opening: string, rest: string): boolean {
    while (this.at < this.raw.length && isBlank(this.raw.charCodeAt(this.at))) this.at += 1
    const mark = this.at + opening.length
    return (
      this.marks[this.mark] === mark &&
      this.raw.startsWith(opening, this.at) &&
      this.raw.startsWith(rest, mark + dsmlMarker.length)
    )
  }

  private pass(tag: string): void {
    this.at += tag.length
    this.mark += 1
  }
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)
}

/** A value as it was written where it is JSON, else as a string. */
function jsonOf(value: string): string {
  try {
    JSON.parse(value)
    return value.trim()
  } catch {
    return JSON.stringify(value)
  }
}
