import type { FunctionTool, Json } from "../ir/conversation"

/** A function as the reference's models dump it: description and parameters always, strict only when it was given. */
export function functionJson({ name, description, parameters, strict }: FunctionTool): Json {
  const described: { [key: string]: Json } = { name, description, parameters }
  if (strict !== null) described.strict = strict
  return described
}
