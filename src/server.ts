/**
 * Composition root of the full role: chooses each room's plug and connects them. Reads as a table of contents of the
 * road; no logic of its own beside start and stop.
 */
import { createApp } from "./api/app"
import type { AppRoom } from "./api/room"
import type { Config } from "./config"
import { openEngine } from "./engine/open"
import { printable } from "./http/log-line"
import { Listener, monotonicSeconds, type RunningServer, type StartFailure } from "./listener"
import type { ModelProfile } from "./model/profile"
import { ok, type Result } from "./result"
import { metricsText, newCallId, newId, openServedModel, renderRoom } from "./served-model"
import type { Tokenizer } from "./tokenizer/tokenizer"

/** Connects everything and listens. */
export async function startServer(
  config: Config,
  profile: ModelProfile,
  log: (line: string) => void,
): Promise<Result<RunningServer, StartFailure>> {
  const model = await openServedModel(config, profile)
  if (!model.ok) return model
  const { tokenizer, facts, window, metrics, chatParser } = model.value
  const opened = openEngine(config, {
    encode: (text) => encodeBare(tokenizer, text),
    decode: (tokenIds) => tokenizer.decode(tokenIds, false),
    vocabSize: tokenizer.vocabSize,
    window,
    modelNames: [profile.name, profile.root],
    isMixtureOfExperts: profile.isMixtureOfExperts,
    featureModalities: config.trustRequestMmKwargs ? facts.mediaKinds : [],
    log: (line) => log(printable(line)),
  })
  if (!opened.ok) return opened
  const { engine, address: engineAddress, isOutlived: enginesOutlive } = opened.value
  const listener = new Listener(config, engine)
  const shared = renderRoom(config, model.value, listener, log)
  const room: AppRoom = {
    ...shared,
    generate: {
      engine,
      tokenizer,
      ids: { item: newId, call: newCallId },
      now: monotonicSeconds,
      countTokens: (prompt, output) => metrics.tokens(prompt, output),
    },
    observer: metrics,
    running: listener.running,
    engineName: engine.name,
    mediaRefusal: mediaRefusal(config.engine),
    isHealthy: () => engine.status().alive,
    metricsText: () => metricsText(metrics, shared.bodies, engine.status()),
  }
  const listening = listener.listen(createApp(room))
  if (!listening.ok) {
    await engine.close()
    return listening
  }
  return ok({
    url: listening.value,
    engineAddress,
    enginesOutlive,
    reasoningParser: chatParser.reasoning,
    toolCallParser: chatParser.tools,
    drained: listener.drained,
    stop: () => listener.stop(),
  })
}

/** Why an engine of this kind takes no media from us. */
function mediaRefusal(engine: Config["engine"]): string | null {
  const instead = "serve with --engine http before a token-in service that has them, such as vLLM's own"
  switch (engine) {
    case "http":
      return null
    case "vllm":
      return (
        "vLLM's engines take media only as the model's own processors prepare them, and this server has no such " +
        `processors; ${instead}`
      )
    case "simulator":
      return `the simulator has no processors for media; ${instead}`
  }
}

/** Nothing is added; special tokens that are spelled out become their ids. What cannot be encoded gives nothing. */
function encodeBare(tokenizer: Tokenizer, text: string): Uint32Array {
  const encoded = tokenizer.encode(text, { addSpecialTokens: false })
  return encoded.ok ? encoded.value : new Uint32Array(0)
}
