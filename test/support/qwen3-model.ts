/** A Qwen3 model folder without weights, made of the vocabulary and the template that a published package holds. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadModelFolder } from "../../src/model/files"
import type { ModelProfile } from "../../src/model/profile"
import { qwen3Config, qwen3VocabularyFolder } from "./qwen3-folder"

/** The window that the recorded server was told (`--max-model-len`). */
export const qwen3WindowTokens = 4096

/**
 * Loads the folder through the same reader as `--model`. Window, EOS ids and sampling defaults are those that the
 * recorded server sent to its engine: 4096 tokens, 151645 and 151643, 0.6 / 0.95 / 20.
 */
export async function qwen3Profile(): Promise<ModelProfile> {
  const folder = mkdtempSync(join(tmpdir(), "qwen3-"))
  try {
    writeJson(folder, "config.json", qwen3Config)
    writeJson(folder, "generation_config.json", {
      eos_token_id: [151_645, 151_643],
      do_sample: true,
      temperature: 0.6,
      top_p: 0.95,
      top_k: 20,
    })
    const loaded = await loadModelFolder(folder, "qwen3", {
      contextTokensMax: qwen3WindowTokens,
      generationConfig: "auto",
      overrideGenerationConfig: {},
      tokenizerMode: "auto",
      tokenizerFolder: qwen3VocabularyFolder,
    })
    if (!loaded.ok) throw new Error(loaded.error.message)
    return loaded.value
  } finally {
    // What stays to be read, the vocabulary, is elsewhere.
    rmSync(folder, { recursive: true })
  }
}

function writeJson(folder: string, file: string, value: object): void {
  writeFileSync(join(folder, file), JSON.stringify(value))
}
