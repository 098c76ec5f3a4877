import { outcomes } from "./outcomes.js"

const read = async (name) => {
  const response = await fetch(name)
  if (!response.ok) throw new Error(`${name}: ${response.status}`)
  return new Uint8Array(await response.arrayBuffer())
}
await report(await outcomes(false, read))
