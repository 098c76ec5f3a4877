import type { Json } from "../../ir/conversation"
import type { ZmtpPeer } from "../zmtp/peer"

/** `tcp://host:port`; an IPv6 address gets its brackets. */
export function tcpAddress(host: string, port: number): string {
  return `tcp://${host.includes(":") ? `[${host}]` : host}:${port}`
}

/** The port of a `tcp://` address. */
export function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1))
}

/** The host of `host:port`, without brackets; an IPv4 address that is written as IPv6 as itself. */
export function hostOf(endpoint: string): string {
  return endpoint
    .replace("tcp://", "")
    .replace(/:\d+$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/, "")
}

/** Whether a host names all interfaces, and so nothing that another machine could dial. */
export function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::" || host === "*"
}

function isLoopback(host: string): boolean {
  return host.startsWith("127.") || host === "::1" || host === "localhost"
}

/** Ports that the group may need one after the other: it meets again after a failure. Source: vLLM 0.32.0 takes five. */
const meetingPorts = 5
/** Where a group meets on a machine whose free ports we cannot ask for. Source: vLLM's default. */
const firstMeetingPort = 29_500

/**
 * Where engines that step together find each other: on the machine of rank 0, which opened `first`. The keys are set on
 * each engine's parallel configuration (ENGINE_PROTOCOL 2).
 */
export function meetingPoint(first: ZmtpPeer, engines: number): { readonly [key: string]: Json } {
  const host = hostOf(first.remote)
  const isHere = isLoopback(host) || host === hostOf(first.local)
  const ports = isHere ? freePorts(meetingPorts) : Array.from({ length: meetingPorts }, (_, i) => firstMeetingPort + i)
  return {
    data_parallel_master_ip: host,
    data_parallel_master_port: ports[0]!,
    _data_parallel_master_port_list: ports.slice(1),
    data_parallel_size: engines,
  }
}

/** Ports that nobody listens on now, all different. */
function freePorts(count: number): number[] {
  const held = Array.from({ length: count }, () =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  )
  const ports = held.map((listener) => listener.port)
  for (const listener of held) listener.stop(true)
  return ports
}
