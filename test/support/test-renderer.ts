import { type Config, defaultConfig } from "../../src/config"
import { builtInProfile } from "../../src/model/built-in"
import type { ModelProfile } from "../../src/model/profile"
import { startRenderer } from "../../src/renderer"
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
