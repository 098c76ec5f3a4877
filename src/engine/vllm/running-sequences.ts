import type { EngineReceiver, EngineSequence } from "../../ir/engine"
import { type RequestIds, serialsMax, slotsMax } from "./request-id"

/** The engine that computes a sequence, as far as the sequence needs it. */
export interface SequenceHome {
  readonly running: Set<RunningSequence>
  /** Tells the engine to drop it. */
  abort(id: string): void
}

/** A sequence that an engine computes, from submit to its last output. */
export class RunningSequence implements EngineSequence {
  /** The id under which the engine knows it. */
  readonly id: string
  readonly slot: number
  readonly serial: number
  readonly link: SequenceHome
  readonly receiver: EngineReceiver
  /** Its receiver is not called any more. */
  ended = false
  /** It is held to a grammar, and nothing has shown yet that the engine could compile it. */
  constraintPending = false
  private readonly owner: RunningSequences

  constructor(
    owner: RunningSequences,
    id: string,
    place: { readonly slot: number; readonly serial: number },
    link: SequenceHome,
    receiver: EngineReceiver,
  ) {
    this.owner = owner
    this.id = id
    this.slot = place.slot
    this.serial = place.serial
    this.link = link
    this.receiver = receiver
  }

  abort(): void {
    if (this.ended) return
    this.owner.remove(this)
    this.link.abort(this.id)
  }
}

/**
 * Who gets the output of a slot. A slot is used again once its sequence has ended, under another serial, so that an
 * output that was under way then finds nobody.
 */
export class RunningSequences {
  private readonly ids: RequestIds
  private readonly bySlot: (RunningSequence | null)[] = []
  private readonly freeSlots: number[] = []
  private serial = 0
  private count = 0

  constructor(ids: RequestIds) {
    this.ids = ids
  }

  /** Sequences that run, in all engines. */
  get size(): number {
    return this.count
  }

  /** Gives a sequence its id; null when all slots are taken. */
  add(publicId: string, link: SequenceHome, receiver: EngineReceiver): RunningSequence | null {
    const slot = this.freeSlots.pop() ?? this.bySlot.length
    if (slot >= slotsMax) return null
    this.serial = (this.serial + 1) % serialsMax
    const place = { slot, serial: this.serial }
    const sequence = new RunningSequence(this, this.ids.make(publicId, slot, this.serial), place, link, receiver)
    this.bySlot[slot] = sequence
    link.running.add(sequence)
    this.count += 1
    return sequence
  }

  /** Hot: the sequence of an output, or null when there is none any more. */
  find(slot: number, serial: number): RunningSequence | null {
    // Slot -1 is no index: undefined, as for slots that were never used.
    const sequence = this.bySlot[slot]
    return sequence != null && sequence.serial === serial ? sequence : null
  }

  /** The sequence has ended, and its slot is free; a second call for it does nothing. */
  remove(sequence: RunningSequence): void {
    if (sequence.ended) return
    sequence.ended = true
    sequence.link.running.delete(sequence)
    this.bySlot[sequence.slot] = null
    this.freeSlots.push(sequence.slot)
    this.count -= 1
  }
}
