/** A gpt-oss model folder without weights and without a vocabulary: the built-in one is its own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { loadModelFolder } from "../../src/model/files"
import type { ModelProfile } from "../../src/model/profile"

/** Loads the folder through the same reader as `--model`. EOS ids are those of the published generation_config.json. */
export async function gptOssProfile(): Promise<ModelProfile> {
  const folder = mkdtempSync(join(tmpdir(), "gpt-oss-"))
  const write = (file: string, value: object): void => writeFileSync(join(folder, file), JSON.stringify(value))
  try {
    write("config.json", {
      architectures: ["GptOssForCausalLM"],
      model_type: "gpt_oss",
      max_position_embeddings: 131_072,
      eos_token_id: 200_002,
      num_local_experts: 32,
      vocab_size: 201_088,
    })
    write("generation_config.json", { eos_token_id: [200_002, 199_999, 200_012], do_sample: true })
    const loaded = await loadModelFolder(folder, "gpt-oss", {
      contextTokensMax: null,
      generationConfig: "auto",
      overrideGenerationConfig: {},
      tokenizerMode: "auto",
      tokenizerFolder: null,
    })
    if (!loaded.ok) throw new Error(loaded.error.message)
    return loaded.value
  } finally {
    rmSync(folder, { recursive: true })
  }
}
