import { outcomes } from "./outcomes.js"

const read = (name) => Bun.file(new URL(name, import.meta.url)).bytes()
console.log(JSON.stringify(await outcomes(true, read)))
