/** npm `msgpackr`, which the reader and the writer are compared with; installed in test/oracles by test/run.ts. */
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { repository } from "./serve"

const folder = join(repository, "test/oracles")

/** What is used of msgpackr. */
interface Msgpackr {
  pack(value: unknown): Uint8Array
  unpack(bytes: Uint8Array): unknown
}

interface MsgpackrModule {
  Packr: new (options: object) => Msgpackr
}

/** Whether it is installed. */
export const msgpackrExists = existsSync(join(folder, "node_modules/msgpackr"))

/** Plain MessagePack: maps for objects, no records of its own, 64-bit integers as numbers where they are safe. */
export function openMsgpackr(): Msgpackr {
  const { Packr }: MsgpackrModule = createRequire(join(folder, "package.json"))("msgpackr")
  return new Packr({ useRecords: false, mapsAsObjects: true, int64AsType: "auto", variableMapSize: true })
}
