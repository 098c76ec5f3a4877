/** The suite under Node's own test runner: `node --test in-node.js`. */
import { readdir, readFile } from "node:fs/promises"
import test from "node:test"
import { Worker } from "node:worker_threads"
import { cases } from "./built/suite.js"

const all = cases({
  readsPaths: true,
  read: (name) => readFile(new URL(name, import.meta.url)),
  namesIn: (folder) => readdir(folder),
  encodeAllInWorker: (vocabulary, texts) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL("worker-in-node.js", import.meta.url))
      worker.on("error", reject)
      worker.on("message", (ids) => {
        worker.terminate()
        resolve(ids)
      })
      worker.postMessage({ vocabulary, texts })
    }),
})
for (const { name, run } of all) test(name, run)
