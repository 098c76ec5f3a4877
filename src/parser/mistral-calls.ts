import { noTokenId } from "../ir/piece"
import { type ContentMachine, markerStart } from "./content"
import type { Emission } from "./emission"
import { isJsonSpace, JsonScanner } from "./json-scanner"
import { JsonCallMachine, type ResolvedCallGrammar } from "./json-tools"

/** Ids of the markers; -1 for one that the vocabulary lacks. */
export interface MistralCallIds {
  readonly calls: number
  readonly callId: number
  readonly args: number
}

/** The markers' spellings. */
export const mistralCallMarkers = { calls: "[TOOL_CALLS]", callId: "[CALL_ID]", args: "[ARGS]" } as const

/** UTF-16 units of a name or an id; a longer one is no call. */
const nameUnitsMax = 512

const State = {
  text: 0,
  afterMarker: 1,
  name: 2,
  callId: 3,
  beforeArguments: 4,
  arguments: 5,
  beforeObject: 6,
  object: 7,
  afterObject: 8,
  off: 9,
} as const
type State = (typeof State)[keyof typeof State]

/** A list's objects, to the machine that reads one: it is told where each begins and ends by ids that no token has. */
const objectGrammar: ResolvedCallGrammar = {
  grammar: {
    start: mistralCallMarkers.calls,
    end: "",
    beforeStart: "",
    nameKey: "name",
    argumentKeys: ["arguments", "parameters"],
    forms: [],
  },
  startId: 0xffff_fffd,
  endId: 0xffff_fffe,
}

/**
 * Calls of Mistral's models, as those of v11 and later write them, each behind its own marker,
 * `Let me see.[TOOL_CALLS]book[ARGS]{"seat": "4C"}[TOOL_CALLS]pay[ARGS]{}`, or as older ones do, in one list:
 * `[TOOL_CALLS] [{"name": "book", "arguments": {"seat": "4C"}}]`. Both give book with `{"seat": "4C"}`, unchanged.
 *
 * A name may be followed by `[CALL_ID]` and the call's id, and `[ARGS]` may be missing before a brace. A marker counts
 * only as its own token. There is no end marker: a call ends with its arguments' value, or with the next marker where it
 * has none. What is no call becomes text, and everything behind it as well. Source: PARSERS 4.5.
 */
export class MistralCallMachine implements ContentMachine {
  private state: State = State.text
  private readonly ids: MistralCallIds
  private readonly emission: Emission
  private readonly scanner = new JsonScanner()
  private readonly object: JsonCallMachine
  /** What belongs to the frame since the last thing that was given out: text, if no call comes of it. */
  private raw = ""
  private name = ""
  private callId = ""
  /** The list has had a call. */
  private listed = false

  constructor(ids: MistralCallIds, emission: Emission) {
    this.ids = ids
    this.emission = emission
    this.object = new JsonCallMachine(objectGrammar, emission)
  }

  get busy(): boolean {
    return this.state !== State.text && this.state !== State.off
  }

  /** Hot (bench/fold.ts). */
  token(id: number, text: string, start: number, end: number): void {
    if (this.state === State.off || this.inString) this.read(text, start, end)
    else if (id === this.ids.calls) this.open(text, start, end)
    else if (id === this.ids.args && (this.state === State.name || this.state === State.callId)) {
      const at = this.before(text, start, end, mistralCallMarkers.args)
      this.raw += text.slice(at, end)
      this.giveName()
    } else if (id === this.ids.callId && this.state === State.name) {
      const at = this.before(text, start, end, mistralCallMarkers.callId)
      this.raw += text.slice(at, end)
      this.state = State.callId
    } else this.read(text, start, end)
  }

  settle(): void {}

  /** Before its name is out a call is given back as text; afterwards it stays as far as it came. */
  finish(): void {
    if (this.state === State.object) this.object.finish()
    // Behind a call or its name only the frame is missing.
    else if (!this.listed && this.state !== State.beforeArguments) this.emission.text(this.raw)
    this.raw = ""
    this.state = State.off
  }

  private get inString(): boolean {
    return (this.state === State.arguments || this.state === State.object) && this.scanner.inString
  }

  /** Reads what stands in a marker's token before the marker: bytes of a character that ended there. */
  private before(text: string, start: number, end: number, marker: string): number {
    const at = markerStart(text, start, end, marker)
    if (at > start) this.read(text, start, at)
    return at
  }

  private open(text: string, start: number, end: number): void {
    const at = this.before(text, start, end, mistralCallMarkers.calls)
    // The call before has no arguments.
    if (this.state === State.beforeArguments) this.end()
    if (this.state !== State.text) {
      this.fail(text, at, end)
      return
    }
    this.raw = text.slice(at, end)
    this.name = ""
    this.callId = ""
    this.listed = false
    this.state = State.afterMarker
  }

  private end(): void {
    this.emission.callEnd()
    this.raw = ""
    this.state = State.text
  }

  /** No call, or no longer one: text from here to the end of the sequence. */
  private fail(text: string, start: number, end: number): void {
    if (this.state === State.object) this.object.finish()
    this.emission.text(this.raw + text.slice(start, end))
    this.raw = ""
    this.state = State.off
  }

  private giveName(): void {
    const name = this.name.trim()
    if (name === "") {
      this.fail("", 0, 0)
      return
    }
    this.emission.callStart(name, this.callId.trim())
    this.raw = ""
    this.state = State.beforeArguments
  }

  private read(text: string, start: number, end: number): void {
    let at = start
    while (at < end) {
      if (this.state === State.text || this.state === State.off) {
        this.emission.text(text.slice(at, end))
        return
      }
      at = this.readCall(text, at, end)
    }
  }

  /** Reads on in one state. Gives where it stopped. */
  private readCall(text: string, start: number, end: number): number {
    switch (this.state) {
      case State.arguments:
        return this.readArguments(text, start, end)
      case State.object:
        return this.readObject(text, start, end)
      case State.name:
      case State.callId:
        return this.readName(text, start, end)
      default:
        return this.readFrame(text, start, end)
    }
  }

  private readArguments(text: string, start: number, end: number): number {
    const at = this.scanner.scan(text, start, end)
    this.emission.callArguments(text.slice(start, at))
    if (this.scanner.done) this.end()
    return at
  }

  private readObject(text: string, start: number, end: number): number {
    const at = this.scanner.scan(text, start, end)
    this.object.token(noTokenId, text, start, at)
    if (this.scanner.done) this.object.token(objectGrammar.endId, "", 0, 0)
    if (this.object.isOff) this.state = State.off
    else if (this.scanner.done) {
      this.listed = true
      this.state = State.afterObject
    }
    return at
  }

  private readName(text: string, start: number, end: number): number {
    let at = start
    while (at < end && text.charCodeAt(at) !== 0x7b) at += 1
    const part = text.slice(start, at)
    this.raw += part
    if (this.state === State.name) this.name += part
    else this.callId += part
    if (this.name.length + this.callId.length > nameUnitsMax) {
      this.fail(text, at, end)
      return end
    }
    // Arguments without their marker.
    if (at < end) {
      this.giveName()
      if (this.state === State.off) return at
      this.beginArguments()
    }
    return at
  }

  private beginArguments(): void {
    this.raw = ""
    this.scanner.reset()
    this.state = State.arguments
  }

  /** One unit between the parts of a call. */
  private readFrame(text: string, at: number, end: number): number {
    const unit = text.charCodeAt(at)
    if (isJsonSpace(unit)) {
      this.raw += text.charAt(at)
      return at + 1
    }
    const isList = unit === 0x5b
    switch (this.state) {
      case State.afterMarker:
        this.state = isList ? State.beforeObject : State.name
        if (isList) this.raw += "["
        return isList ? at + 1 : at
      case State.beforeArguments:
        if (!/["[{\-\dtfn]/.test(text.charAt(at))) break
        this.beginArguments()
        return at
      case State.beforeObject:
        if (unit !== 0x7b) break
        this.object.token(objectGrammar.startId, this.raw, 0, this.raw.length)
        this.raw = ""
        this.scanner.reset()
        this.state = State.object
        return at
      case State.afterObject:
        if (unit === 0x2c) {
          this.raw += ","
          this.state = State.beforeObject
          return at + 1
        }
        if (unit !== 0x5d) break
        this.raw = ""
        this.state = State.text
        return at + 1
    }
    this.fail(text, at, end)
    return end
  }
}
