import { afterAll, expect, test } from "bun:test"
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { defaultConfig } from "../src/config"
import { loadModelFolder } from "../src/model/files"
import { openServedModel } from "../src/served-model"
import { byteLevelTokenizer } from "./tokenizer/small-tokenizers"

const folder = mkdtempSync(join(tmpdir(), "sluice-model-"))
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, "config.json"), JSON.stringify({ max_position_embeddings: 64 }))
writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(byteLevelTokenizer().json))

/** Ids of " the", from a model that is opened with this folder for vocabularies. */
async function ids(tokenizerCacheDir: string | null): Promise<number[]> {
  const profile = await loadModelFolder(folder, "small", {
    contextTokensMax: null,
    generationConfig: "auto",
    overrideGenerationConfig: {},
    tokenizerMode: "auto",
    tokenizerFolder: folder,
  })
  if (!profile.ok) throw new Error(profile.error.message)
  const model = await openServedModel({ ...defaultConfig, tokenizerCacheDir }, profile.value)
  if (!model.ok) throw new Error(model.error.message)
  const encoded = model.value.tokenizer.encode(" the", { addSpecialTokens: false })
  if (!encoded.ok) throw new Error(encoded.error.message)
  return Array.from(encoded.value)
}

test("a model's vocabulary is kept where the configuration says, and nowhere otherwise", async () => {
  const cache = join(folder, "cache")
  expect(await ids(null)).toEqual([258])
  expect(existsSync(cache)).toBe(false)
  for (let start = 0; start < 2; start++) {
    expect(await ids(cache)).toEqual([258])
    expect(readdirSync(cache)).toHaveLength(1)
  }
})
