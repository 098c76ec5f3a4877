import type { RunningRequest } from "./api/room"
import type { AppFetch } from "./api/router"
import type { Config } from "./config"
import type { Engine } from "./ir/engine"
import { err, ok, type Result } from "./result"

/** Why a server cannot start. `message` is one line for the user. */
export interface StartFailure {
  readonly kind: string
  readonly message: string
}

/** A server that accepts connections. */
export interface RunningServer {
  /** `http://HOST:PORT`, or `unix:PATH`. */
  readonly url: string
  /** Where engines dial in; null for one of this process, or none. */
  readonly engineAddress: string | null
  /** Whether engines that others started find the next process of this server by themselves. */
  readonly enginesOutlive: boolean
  /** Names of the parsers in use, for the banner. */
  readonly reasoningParser: string
  readonly toolCallParser: string
  /** Settles when nothing runs any more after `stop`. */
  readonly drained: Promise<void>
  /** Takes no new requests; running ones get `shutdownTimeoutSeconds`, then an error. */
  stop(): void
}

/** Seconds since some moment of this process. */
export function monotonicSeconds(): number {
  return performance.now() / 1000
}

/** A connection on which nothing moves; routes that may stay silent for longer say so. Bun's own most is 255. */
const idleSecondsMax = 60
const pollMs = 10

/** The listening socket, from bind to drain: Bun's server, the requests that run, and the order in which they end. */
export class Listener {
  readonly running: Set<RunningRequest> = new Set()
  readonly drained: Promise<void>
  isDraining = false
  private settle: () => void = () => {}
  private server: Bun.Server<undefined> | null = null
  private readonly config: Config
  private readonly engine: Pick<Engine, "close"> | null

  /** `engine` is closed when all is drained; null in the role that has none. */
  constructor(config: Config, engine: Pick<Engine, "close"> | null) {
    this.config = config
    this.engine = engine
    this.drained = new Promise((resolve) => {
      this.settle = resolve
    })
  }

  listen(fetch: AppFetch): Result<string, StartFailure> {
    const { config } = this
    const common = {
      development: false,
      // Bun breaks the connection of a body over its own limit; ours (http/body.ts) answers.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      fetch: (request: Request, server: Bun.Server<undefined>) =>
        fetch(request, (seconds) => server.timeout(request, seconds ?? idleSecondsMax)),
    }
    // Without `development` Bun shares a taken port silently unless it is told not to.
    const tcp = { hostname: config.host, port: config.port, reusePort: false, idleTimeout: idleSecondsMax }
    try {
      this.server =
        config.uds === null
          ? Bun.serve({ ...common, ...tcp, ...this.tls() })
          : Bun.serve({ ...common, unix: config.uds, ...this.tls() })
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      const place = config.uds ?? `${config.host}:${config.port}`
      const flag = config.uds === null ? "--host and --port say where, port 0 is any free one" : "--uds says where"
      return err({ kind: "cannot_listen", message: `cannot listen on ${place}: ${reason} (${flag})` })
    }
    if (config.uds !== null) return ok(`unix:${config.uds}`)
    const scheme = config.tls === null ? "http" : "https"
    const host = config.host.includes(":") ? `[${config.host}]` : config.host
    return ok(`${scheme}://${host}:${this.server.port}`)
  }

  stop(): void {
    if (this.isDraining) return
    this.isDraining = true
    void this.drain()
  }

  private tls(): { tls?: Bun.TLSOptions } {
    const { tls } = this.config
    if (tls === null) return {}
    return {
      tls: {
        key: Bun.file(tls.keyFile),
        cert: Bun.file(tls.certFile),
        ...(tls.caFile !== null && { ca: Bun.file(tls.caFile) }),
      },
    }
  }

  private async drain(): Promise<void> {
    const deadline = monotonicSeconds() + this.config.shutdownTimeoutSeconds
    const stopped = this.server?.stop(false)
    while (this.running.size > 0 && monotonicSeconds() < deadline) await Bun.sleep(pollMs)
    for (const request of [...this.running]) request.shutDown()
    // Their last frames still have to leave; connections that clients merely keep open do not hold us up.
    await Promise.race([stopped, Bun.sleep(lastFramesMs)])
    await this.server?.stop(true)
    await this.engine?.close()
    this.settle()
  }
}

/** Time that the errors of a cut drain have to reach their clients. */
const lastFramesMs = 200
