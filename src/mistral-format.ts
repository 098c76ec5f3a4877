/** What `--tokenizer-mode mistral` makes of a model: the format of its prompts, from its vocabulary's files. */
import { basename } from "node:path"
import type { StartFailure } from "./listener"
import { readVocabulary } from "./model/files"
import type { TokenizerSource } from "./model/profile"
import { type MistralSetting, readMistralSetting, sentencePieceSetting } from "./prompt/mistral/setting"
import type { PromptFormat } from "./prompt/open-renderer"
import { err, ok, type Result } from "./result"

/** The format, or why the model has none; reads tekken.json once more. Run at start-up. */
export async function openMistralFormat(source: TokenizerSource): Promise<Result<PromptFormat, StartFailure>> {
  const path = source.kind === "file" ? source.versionPath : null
  if (path === null) return unusable("tokenizer mode mistral needs a model folder with Mistral's vocabulary")
  const setting =
    basename(path) === "tekken.json" ? await readTekkenSetting(path) : sentencePieceSetting(basename(path))
  return setting.ok ? ok({ kind: "mistral", mistral: setting.value }) : setting
}

async function readTekkenSetting(path: string): Promise<Result<MistralSetting, StartFailure>> {
  const bytes = await readVocabulary(path)
  if (!bytes.ok) return bytes
  try {
    return readMistralSetting(JSON.parse(new TextDecoder().decode(bytes.value)))
  } catch {
    return unusable(`${path} is no JSON`)
  }
}

function unusable(message: string): Result<never, StartFailure> {
  return err({ kind: "renderer_unusable", message })
}
