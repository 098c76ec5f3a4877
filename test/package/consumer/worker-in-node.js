import { parentPort } from "node:worker_threads"
import { encodeAll } from "./built/suite.js"

parentPort.on("message", ({ vocabulary, texts }) => parentPort.postMessage(encodeAll(vocabulary, texts)))
