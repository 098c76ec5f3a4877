/**
 * Composition root of the role without an engine: everything from a body to token ids, and from token ids to an answer.
 * Nothing here reaches engine/ (test/layout.test.ts).
 */
import { createRenderApp } from "./api/render-app"
import type { Config } from "./config"
import { Listener, type RunningServer, type StartFailure } from "./listener"
import type { ModelProfile } from "./model/profile"
import { ok, type Result } from "./result"
import { openServedModel, renderRoom, type ServedModel } from "./served-model"

/** Connects everything and listens. */
export async function startRenderer(
  config: Config,
  profile: ModelProfile,
  log: (line: string) => void,
): Promise<Result<RunningServer, StartFailure>> {
  const model = await openServedModel(config, profile)
  return model.ok ? listenWith(config, model.value, log) : model
}

/** Listens for a model that is open. The model holds no state of a renderer's: several may share it. */
export function listenWith(
  config: Config,
  model: ServedModel,
  log: (line: string) => void,
): Result<RunningServer, StartFailure> {
  const listener = new Listener(config, null)
  const listening = listener.listen(createRenderApp(renderRoom(config, model, listener, log)))
  if (!listening.ok) return listening
  return ok({
    url: listening.value,
    engineAddress: null,
    enginesOutlive: false,
    reasoningParser: model.chatParser.reasoning,
    toolCallParser: model.chatParser.tools,
    drained: listener.drained,
    stop: () => listener.stop(),
  })
}
