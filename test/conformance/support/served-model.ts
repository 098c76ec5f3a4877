import { afterAll, beforeAll, expect } from "bun:test"
import { type Server, startServer } from "../../support/server-process"

/** The server that a file of tests talks to, and the name of its model; both are there once the tests run. */
export interface ServedModel {
  readonly server: Server
  readonly name: string
}

/** Starts a server before the file's tests, and ends it behind them; it must end well. */
export function servedModel(): ServedModel {
  let served: ServedModel | null = null
  const present = (): ServedModel => {
    if (served === null) throw new Error("the server is there only while tests run")
    return served
  }
  beforeAll(async () => {
    const server = await startServer()
    const models: { data: { id: string }[] } = await (await fetch(`${server.baseURL}/models`)).json()
    served = { server, name: models.data[0]!.id }
  })
  afterAll(async () => {
    expect(await served?.server.end()).toBe(0)
  })
  return {
    get server() {
      return present().server
    },
    get name() {
      return present().name
    },
  }
}
