/** The worker of Bun and browsers. */
import { encodeAll } from "./built/suite.js"

self.onmessage = ({ data }) => self.postMessage(encodeAll(data.vocabulary, data.texts))
