import { Finish } from "../../ir/engine"
import { err, ok, type Result } from "../../result"
import { type MalformedFrame, MessagePackReader, skipValue } from "./message-pack-reader"
import { OutputField, OutputsBatch } from "./outputs-batch"
import { isOfAnotherProcess, type RequestIds, serialAt, slotAt } from "./request-id"

/** What an engine says when its loop has failed; the process then exits (ENGINE_PROTOCOL 11). */
const engineDead = new TextEncoder().encode("ENGINE_CORE_DEAD")

/** Whether a message is the engine's last words rather than outputs. */
export function isEngineDead(frames: readonly Uint8Array[]): boolean {
  const [body] = frames
  return frames.length === 1 && body !== undefined && body.length === 16 && engineDead.every((at, i) => body[i] === at)
}

/** Fields of EngineCoreOutputs (ENGINE_PROTOCOL 7). */
const MessageField = {
  engineIndex: 0,
  outputs: 1,
  schedulerStats: 2,
  timestamp: 3,
  utility: 4,
  finishedRequests: 5,
  waveComplete: 6,
  startWave: 7,
} as const

/**
 * Bytes of the engine → `OutputsBatch`: one pass, one reused result, no object or string for an output. Missing fields
 * at the end take their defaults and further ones are stepped over, as msgspec does, so 18 and 19 elements are the same
 * to it. A message that is malformed anywhere gives none of its outputs.
 */
export class OutputsDecoder {
  readonly batch = new OutputsBatch()
  private readonly ids: RequestIds
  private readonly reader = new MessagePackReader()
  private readonly decoded: Result<OutputsBatch, MalformedFrame> = ok(this.batch)
  /** Where reading of outputs goes on, or went wrong. */
  private at = 0
  private fault = ""

  constructor(ids: RequestIds) {
    this.ids = ids
  }

  /** Hot (bench/frames.ts). The frames are borrowed until the next call; frame 0 is the body. */
  decode(frames: readonly Uint8Array[]): Result<OutputsBatch, MalformedFrame> {
    const { batch, reader } = this
    batch.clear()
    const body = frames[0]
    if (body === undefined) return err({ kind: "malformed_frame", message: "the message has no frame", at: 0 })
    batch.frames = frames
    reader.reset(body)
    const fields = reader.readArraySize()
    for (let field = 0; field < fields && !reader.failed; field++) this.field(field, body)
    if (!reader.failed && reader.at !== body.length) reader.fail("bytes stand behind the message")
    if (!reader.failed) return this.decoded
    batch.clear()
    return err(reader.failure())
  }

  private field(field: number, body: Uint8Array): void {
    const { batch, reader } = this
    if (reader.takeNil()) return
    switch (field) {
      case MessageField.engineIndex:
        batch.engineIndex = reader.readInteger()
        return
      case MessageField.outputs: {
        const count = reader.readArraySize()
        const isWhole = this.outputs(body, reader.at, count)
        reader.at = this.at
        if (isWhole) batch.count = count
        else reader.fail(this.fault)
        return
      }
      case MessageField.schedulerStats:
        batch.schedulerStatsAt = reader.at
        reader.skip()
        return
      case MessageField.timestamp:
        batch.timestamp = reader.readNumber()
        return
      case MessageField.utility:
        batch.utilityAt = reader.at
        reader.skip()
        return
      case MessageField.finishedRequests:
        batch.finishedRequestsAt = reader.at
        reader.skip()
        return
      case MessageField.waveComplete:
        batch.waveComplete = reader.readInteger()
        return
      case MessageField.startWave:
        batch.startWave = reader.readInteger()
        return
      default:
        reader.skip()
    }
  }

  /**
   * All outputs, from `at`. Leaves `this.at` behind them; false with `this.fault` where one is malformed. Room grows with
   * what was read, never with what a count claims.
   */
  private outputs(bytes: Uint8Array, from: number, count: number): boolean {
    const { batch } = this
    this.at = from
    for (let done = 0; done < count; ) {
      const until = Math.min(count, batch.slot.length)
      if (!this.some(bytes, done, until)) return false
      done = until
      if (done < count) batch.growOutputs()
    }
    return true
  }

  /** Hot: outputs `first` to `until`, for which there is room; the arrays stay the same meanwhile. */
  private some(bytes: Uint8Array, first: number, until: number): boolean {
    const { batch, ids } = this
    const { slot, serial, start, end: ends, finish, stopTokenId, present, fieldsAt } = batch
    const end = bytes.length
    let tokenIds = batch.tokenIds
    let tokens = first === 0 ? 0 : ends[first - 1]!
    let { at } = this
    for (let i = first; i < until; i++) {
      // An output takes three bytes at least: the headers of itself, its id and its token ids.
      if (at + 3 > end) return this.broken(at, "the message ends within an output")
      let tag = bytes[at]!
      let fields: number
      if (tag === 0xdc) {
        fields = (bytes[at + 1]! << 8) | bytes[at + 2]!
        at += 3
      } else if ((tag & 0xf0) === 0x90) {
        fields = tag & 0x0f
        at += 1
      } else {
        return this.broken(at, "an output was expected")
      }
      if (fields < 2) return this.broken(at, "an output has two fields at least")

      // Length bytes that are missing read as 0; the check of the whole id then fails.
      if (at + 2 > end) return this.broken(at, "the message ends within an output")
      tag = bytes[at]!
      let length: number
      if (tag === 0xd9) {
        length = bytes[at + 1]!
        at += 2
      } else if ((tag & 0xe0) === 0xa0) {
        length = tag & 0x1f
        at += 1
      } else if (tag === 0xda) {
        length = (bytes[at + 1]! << 8) | bytes[at + 2]!
        at += 3
      } else {
        return this.broken(at, "a request id was expected")
      }
      if (at + length >= end) return this.broken(at, "the message ends within a request id")
      slot[i] = -1
      if (ids.isOurs(bytes, at, at + length)) {
        const place = slotAt(bytes, at + length)
        const use = serialAt(bytes, at + length)
        if (place >= 0 && use >= 0) {
          slot[i] = place
          serial[i] = use
        }
      } else if (isOfAnotherProcess(bytes, at, at + length)) {
        batch.strangers.push(i, at, at + length)
      }
      at += length

      start[i] = tokens
      tag = bytes[at]!
      let news: number
      if ((tag & 0xf0) === 0x90) {
        news = tag & 0x0f
        at += 1
      } else if (tag === 0xdc && at + 3 <= end) {
        news = (bytes[at + 1]! << 8) | bytes[at + 2]!
        at += 3
      } else if (tag === 0xdd && at + 5 <= end && bytes[at + 1]! < 0x80) {
        news = (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!
        at += 5
      } else {
        return this.broken(at, "token ids were expected")
      }
      if (at + news > end) return this.broken(at, "the message ends within token ids")
      if (tokens + news > tokenIds.length) {
        batch.reserveTokens(tokens + news)
        tokenIds = batch.tokenIds
      }
      for (let j = 0; j < news; j++) {
        if (at >= end) return this.broken(at, "the message ends within token ids")
        tag = bytes[at]!
        if (tag <= 0x7f) {
          tokenIds[tokens++] = tag
          at += 1
        } else if (tag === 0xcd && at + 3 <= end) {
          tokenIds[tokens++] = (bytes[at + 1]! << 8) | bytes[at + 2]!
          at += 3
        } else if (tag === 0xce && at + 5 <= end) {
          tokenIds[tokens++] = (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!
          at += 5
        } else {
          const id = this.unusualId(bytes, at)
          if (id < 0) return this.broken(at, "a token id was expected")
          tokenIds[tokens++] = id
          at = this.at
        }
      }
      ends[i] = tokens

      finish[i] = Finish.none
      stopTokenId[i] = -1
      fieldsAt[i] = at
      let set = 0
      let field = 2
      if (fields >= 18 && at + 16 <= end && isQuiet(bytes, at)) {
        field = 18
        at += 16
      }
      for (; field < fields; field++) {
        if (at >= end) return this.broken(at, "the message ends within an output")
        tag = bytes[at]!
        if (tag === 0xc0) {
          at += 1
        } else if (field === OutputField.nanCount && tag === 0) {
          at += 1
        } else if (field === OutputField.finishReason && tag <= 0x7f) {
          finish[i] = tag <= Finish.repetition ? tag : Finish.error
          at += 1
        } else {
          const next = skipValue(bytes, at, end)
          if (next < 0) return this.broken(at, "the message ends within an output")
          if (field === OutputField.finishReason) finish[i] = Finish.error
          else if (field === OutputField.stopReason) stopTokenId[i] = this.stopToken(bytes, at)
          else if (field <= OutputField.error) set |= 1 << field
          at = next
        }
      }
      present[i] = set
    }
    this.at = at
    return true
  }

  private broken(at: number, message: string): false {
    this.at = at
    this.fault = message
    return false
  }

  /** A token id of a width that is seldom used, -1 if it is none; sets `this.at`. */
  private unusualId(bytes: Uint8Array, at: number): number {
    const next = skipValue(bytes, at, bytes.length)
    const tag = bytes[at]!
    if (next < 0 || tag < 0xcc || tag > 0xd3) return -1
    let id = 0
    const isSigned = tag >= 0xd0
    if (isSigned && bytes[at + 1]! >= 0x80) return -1
    for (let i = at + 1; i < next; i++) id = id * 256 + bytes[i]!
    this.at = next
    return id <= 0xffff_ffff ? id : -1
  }

  /** The token id that ended a sequence; -1 when the reason is a word. */
  private stopToken(bytes: Uint8Array, at: number): number {
    const tag = bytes[at]!
    if (tag <= 0x7f) return tag
    const id = this.unusualId(bytes, at)
    return id <= 0x7fff_ffff ? id : -1
  }
}

/** Whether fields 2 to 17 of an output say nothing, as they do for nearly every token: nils, and no NaN in the logits. */
function isQuiet(bytes: Uint8Array, at: number): boolean {
  const nils =
    (bytes[at]! ^ 0xc0) |
    (bytes[at + 1]! ^ 0xc0) |
    (bytes[at + 2]! ^ 0xc0) |
    (bytes[at + 3]! ^ 0xc0) |
    (bytes[at + 4]! ^ 0xc0) |
    (bytes[at + 5]! ^ 0xc0) |
    (bytes[at + 6]! ^ 0xc0) |
    (bytes[at + 7]! ^ 0xc0) |
    (bytes[at + 8]! ^ 0xc0) |
    (bytes[at + 9]! ^ 0xc0) |
    (bytes[at + 10]! ^ 0xc0) |
    bytes[at + 11]! |
    (bytes[at + 12]! ^ 0xc0) |
    (bytes[at + 13]! ^ 0xc0) |
    (bytes[at + 14]! ^ 0xc0) |
    (bytes[at + 15]! ^ 0xc0)
  return nils === 0
}
