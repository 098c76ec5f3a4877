import { type Config, defaultConfig } from "../../src/config"
import { builtInProfile } from "../../src/model/built-in"
import type { ModelProfile } from "../../src/model/profile"
import { listenWith, startRenderer } from "../../src/renderer"
import { openServedModel } from "../../src/served-model"
import { openTestServer, type TestServer } from "./test-server"

/** Starts the role without an engine, with scale-out on unless `config` says otherwise. */
export async function startTestRenderer(
  options: { readonly config?: Partial<Config>; readonly profile?: Partial<ModelProfile> } = {},
): Promise<TestServer> {
  const log: string[] = []
  const config: Config = { ...defaultConfig, role: "render", enableScaleOut: true, port: 0, ...options.config }
  const profile = { ...(await builtInProfile()), ...options.profile }
  const started = await startRenderer(config, profile, (line) => log.push(line))
  if (!started.ok) throw new Error(started.error.message)
  return openTestServer(started.value, log)
}

/** One renderer for each of the changes to the defaults, all over one built-in model: opening it is what takes long. */
export async function startTestRenderers(...changes: readonly Partial<Config>[]): Promise<TestServer[]> {
  const base: Config = { ...defaultConfig, role: "render", enableScaleOut: true, port: 0 }
  const model = await openServedModel(base, await builtInProfile())
  if (!model.ok) throw new Error(model.error.message)
  return changes.map((change) => {
    const log: string[] = []
    const started = listenWith({ ...base, ...change }, model.value, (line) => log.push(line))
    if (!started.ok) throw new Error(started.error.message)
    return openTestServer(started.value, log)
  })
}
