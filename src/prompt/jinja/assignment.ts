import { compileExpression } from "./expression-compiler"
import type { Frame } from "./frame"
import { checkField } from "./globals"
import { TemplateError } from "./run"
import type { Standing } from "./standing"
import type { Target } from "./syntax"
import { listed, Namespace, Tuple, type Value } from "./value"

/** Only namespaces have attributes to set; that is looked at before the value is computed. */
export function checkingNamespaces(target: Target, at: Standing): (frame: Frame) => void {
  if (target.type === "name") return () => {}
  if (target.type === "targets") {
    const checks = target.items.map((item) => checkingNamespaces(item, at))
    return (frame) => {
      for (const check of checks) check(frame)
    }
  }
  const namespace = compileExpression({ type: "name", name: target.namespace }, at)
  return (frame) => {
    if (namespace(frame) instanceof Namespace) return
    throw new TemplateError("cannot assign attribute on non-namespace object")
  }
}

/** Gives a value to a target. */
export function assigning(target: Target, at: Standing): (frame: Frame, value: Value) => void {
  if (target.type === "name") {
    // The scope was asked about all targets before.
    const { index } = at.scope.find(target.name)!
    if (!at.top) {
      return (frame, value) => {
        frame.held[index] = value
      }
    }
    return (frame, value) => {
      frame.held[index] = value
      frame.context.export(target.name, value)
    }
  }
  if (target.type === "targets") return unpacking(target.items, at)
  const namespace = compileExpression({ type: "name", name: target.namespace }, at)
  return (frame, value) => {
    const object = namespace(frame)
    if (!(object instanceof Namespace)) throw new TemplateError("cannot assign attribute on non-namespace object")
    checkField(target.name)
    object.entries.set(target.name, value)
  }
}

function unpacking(targets: readonly Target[], at: Standing) {
  const assigns = targets.map((target) => assigning(target, at))
  return (frame: Frame, value: Value): void => {
    const items = value instanceof Tuple ? value.items : listed(value, frame.run)
    if (items.length > assigns.length) {
      throw new TemplateError(`too many values to unpack (expected ${assigns.length})`)
    }
    if (items.length < assigns.length) {
      throw new TemplateError(`not enough values to unpack (expected ${assigns.length}, got ${items.length})`)
    }
    for (let i = 0; i < assigns.length; i++) assigns[i]!(frame, items[i])
  }
}
