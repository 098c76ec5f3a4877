import type { LoraAdapter } from "../../ir/generate-request"
import type { AddRequest, EngineLimits } from "./add-request"
import { writeFeatures } from "./media-features"
import { MessagePackWriter } from "./message-pack-writer"
import { writeSampling } from "./sampling-map"

/** Fields of EngineCoreRequest (ENGINE_PROTOCOL 5) up to the last that can be set. */
const fieldCount = 21

/** Writes ADD bodies. Meant to be kept: its buffer is reused. */
export class AddEncoder {
  private readonly writer = new MessagePackWriter()
  private readonly limits: EngineLimits

  constructor(limits: EngineLimits) {
    this.limits = limits
  }

  /** The body of ADD, in bytes of its own. `add` has passed `checkAdd`: the engine dies of what that refuses. */
  encode(add: AddRequest): Uint8Array {
    const { writer } = this
    const { request } = add
    const lora = request.lora ?? null
    writer.reset()
    writer.array(fieldCount)
    writer.string(add.engineRequestId)
    writer.ids(request.promptTokenIds)
    const media = add.mediaFeatures ?? []
    if (media.length === 0) writer.nil()
    else writeFeatures(writer, media)
    writeSampling(writer, add, this.limits)
    writer.nil() // pooling
    writer.float(add.arrivalTime)
    if (lora === null) writer.nil()
    else writeLora(writer, lora)
    stringOrNil(writer, request.cacheSalt)
    if (request.dataParallelRank === null) writer.nil()
    else writer.int(request.dataParallelRank)
    writer.nil() // prompt embeddings
    writer.nil() // which positions are token ids
    writer.int(add.clientIndex)
    writer.int(add.currentWave)
    writer.int(request.priority)
    if (request.traceHeaders === null) writer.nil()
    else {
      const headers = Object.entries(request.traceHeaders)
      writer.map(headers.length)
      for (const [name, value] of headers) {
        writer.string(name)
        writer.string(value)
      }
    }
    writer.boolean(false) // resumable
    writer.string(request.requestId)
    if (request.reasoningEnded == null) writer.nil()
    else writer.boolean(request.reasoningEnded)
    writer.nil() // arguments of the engine's own reasoning parser
    writer.boolean(false) // abort immediately
    stringOrNil(writer, request.sessionId)
    return writer.finish()
  }
}

function stringOrNil(writer: MessagePackWriter, value: string | null): void {
  if (value === null) writer.nil()
  else writer.string(value)
}

function writeLora(writer: MessagePackWriter, lora: LoraAdapter): void {
  writer.array(6)
  writer.string(lora.name)
  writer.int(lora.id)
  writer.string(lora.path)
  stringOrNil(writer, lora.baseModelName)
  writer.boolean(false) // load in place: only for an adapter whose files have changed
  writer.boolean(lora.is3dWeight)
}
