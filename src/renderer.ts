/**
 * Composition root of the role without an engine: everything from a body to token ids, and from token ids to an answer.
 * Nothing here reaches engine/ (test/layout.test.ts).
 */
import { createRenderApp } from "./api/render-app"
import type { Config } from "./config"
import { Listener, type RunningServer, type StartFailure } from "./listener"
import type { ModelProfile } from "./model/profile"
import { ok, type Result } from "./result"
import { openServedModel, renderRoom } from "./served-model"

/** Connects everything and listens. */
export async function startRenderer(
  config: Config,
  profile: ModelProfile,
  log: (line: string) => void,
): Promise<Result<RunningServer, StartFailure>> {
  const model = await openServedModel(config, profile)
  if (!model.ok) return model
  const listener = new Listener(config, null)
  const listening = listener.listen(createRenderApp(renderRoom(config, model.value, listener, log)))
  if (!listening.ok) return listening
  return ok({
    url: listening.value,
    engineAddress: null,
    reasoningParser: model.value.chatParser.reasoning,
    toolCallParser: model.value.chatParser.tools,
    drained: listener.drained,
    stop: () => listener.stop(),
  })
}
