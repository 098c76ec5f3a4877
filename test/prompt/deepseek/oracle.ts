/**
 * The reference itself: the encoders of vLLM, taken out of its package into a folder beside this file, once. They need
 * nothing of the rest, which is large.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { DeepseekVersion } from "../../../src/prompt/deepseek/turn"
import { askScript, run } from "../../support/python-environment"

const root = join(import.meta.dir, "../../..")
const environment = join(import.meta.dir, ".venv")
const encoders = join(environment, "encoders")
/** Its package and version. */
export const reference = readFileSync(join(import.meta.dir, "requirements.txt"), "utf8").trim()

/** A version, and the JSON text of a chat request's body. */
export interface DeepseekQuestion {
  readonly version: DeepseekVersion
  readonly body: string
}

/** A prompt, or why the reference has none. */
export type DeepseekAnswer = { readonly text: string } | { readonly error: string }

/** Answers questions (scripts/deepseek-oracle.py), many at once. */
export async function askDeepseek(questions: readonly DeepseekQuestion[]): Promise<readonly DeepseekAnswer[]> {
  await takeEncoders()
  const lines = questions.map(({ version, body }) => `{"version":"${version}","body":${body}}`)
  const command = [join(environment, "bin/python"), "-B", join(root, "scripts/deepseek-oracle.py"), encoders]
  // The script writes this shape.
  return (await askScript(command, lines)) as DeepseekAnswer[]
}

/** Fetches the package without what it depends on, keeps the few files that are asked, and drops the rest. */
async function takeEncoders(): Promise<void> {
  const stamp = join(encoders, ".taken-from")
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === reference) return
  rmSync(environment, { recursive: true, force: true })
  await run("python3", "-m", "venv", environment)
  const wheels = join(environment, "wheels")
  const python = join(environment, "bin/python")
  const anyMachine = ["--only-binary=:all:", "--platform=manylinux_2_28_x86_64", "--python-version=3.12"]
  const pip = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", ...anyMachine]
  await run(...pip, `--dest=${wheels}`, reference)
  const take = `
import glob, sys, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
names = [name for name in wheel.namelist() if name.startswith("vllm/tokenizers/deepseek_")]
wheel.extractall(sys.argv[2], names)`
  await run(python, "-c", take, wheels, encoders)
  rmSync(wheels, { recursive: true })
  writeFileSync(stamp, reference)
}
