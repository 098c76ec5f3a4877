/** Runs the suite in Bun or a browser, one case after the other: the name of each, and its error or null. */
import { cases } from "./built/suite.js"

export async function outcomes(readsPaths, read) {
  const encodeAllInWorker = (vocabulary, texts) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" })
      worker.onerror = (event) => reject(new Error(event.message))
      worker.onmessage = ({ data }) => {
        worker.terminate()
        resolve(data)
      }
      worker.postMessage({ vocabulary, texts })
    })
  const found = []
  for (const { name, run } of cases({ readsPaths, read, encodeAllInWorker })) {
    found.push(
      await run().then(
        () => ({ name, error: null }),
        (error) => ({ name, error: String(error) }),
      ),
    )
  }
  return found
}
