/**
 * The outcome of work that a client, a model file or an engine can make fail. Such failures are values, so that they
 * travel up the road to `api/errors.ts` without an exception; only our own bugs throw (STYLE.md, Errors).
 */
export type Result<Value, Failure> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: Failure }

/** Wraps a value as success. */
export function ok<Value>(value: Value): { readonly ok: true; readonly value: Value } {
  return { ok: true, value }
}

/** Wraps a failure. */
export function err<Failure>(error: Failure): { readonly ok: false; readonly error: Failure } {
  return { ok: false, error }
}
