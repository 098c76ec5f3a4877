import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { makeQwen3Folder, qwen3Config } from "./qwen3-folder"
import { visionTemplate } from "./vision-model"

/** The vision model as a folder, for servers that are started by their command; whoever asked for it removes it. */
export function makeVisionFolder(): string {
  const folder = makeQwen3Folder()
  const config = { ...qwen3Config, model_type: "qwen2_5_vl", architectures: ["Qwen2_5_VLForConditionalGeneration"] }
  writeFileSync(join(folder, "config.json"), JSON.stringify(config))
  const path = join(folder, "tokenizer_config.json")
  const tokenizer = JSON.parse(readFileSync(path, "utf8"))
  writeFileSync(path, JSON.stringify({ ...tokenizer, chat_template: visionTemplate }))
  return folder
}
