/** What clients send may end up in log lines: it must not make lines of its own, nor steer a terminal. */
export function printable(line: string): string {
  return line.replace(/[\p{Cc}\u2028\u2029]/gu, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
}
