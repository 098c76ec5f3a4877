import type { Conversation } from "../ir/conversation"
import { ok, type Result } from "../result"
import type { TextSegment, Tokenizer } from "../tokenizer/tokenizer"
import { wholeText } from "./encode-segments"
import { TextGuard } from "./guarded-text"

/** What becomes of special tokens that users and tools spell out. */
export interface GuardSetting {
  readonly tokenizer: Tokenizer
  /**
   * `guard`: special tokens that users and tools spell out are text. `parity`: they are tokens, as in the reference.
   */
  readonly promptSpecialTokens: "guard" | "parity"
  /** Told when foreign text spells special tokens and could not be guarded. */
  readonly onUnguarded: () => void
}

/** Writes conversations as text and tells, for the encoder, what of it is foreign (guarded-text.ts). */
export class GuardedWriter {
  private readonly setting: GuardSetting
  private readonly guard: TextGuard | null

  /** `control`: tokens that are guarded as well where the vocabulary has them, although they are no special ones. */
  constructor(setting: GuardSetting, control: readonly string[] = []) {
    this.setting = setting
    this.guard = setting.promptSpecialTokens === "guard" ? new TextGuard(setting.tokenizer, control) : null
  }

  /** What `write` makes of a conversation; in more than one segment when foreign text spells special tokens. */
  segments<Failure>(
    conversation: Conversation,
    write: (conversation: Conversation) => Result<string, Failure>,
  ): Result<readonly TextSegment[], Failure> {
    const marked = this.guard?.mark(conversation) ?? null
    if (this.guard !== null && marked !== null && this.canGuard(this.guard, conversation)) {
      const written = write(marked)
      const segments = written.ok ? this.guard.segments(written.value) : null
      if (segments !== null) return ok(segments)
    }
    const written = write(conversation)
    if (marked !== null && written.ok) this.setting.onUnguarded()
    return written.ok ? ok(wholeText(written.value)) : written
  }

  private canGuard(guard: TextGuard, conversation: Conversation): boolean {
    return this.setting.tokenizer.encodeSegments !== undefined && !guard.collides(conversation)
  }
}
