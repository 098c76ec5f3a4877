import { type Frame, type Held, missing } from "./frame"
import { TemplateError } from "./run"
import type { Load, Place, Scope } from "./scope"

/** The frames to go up from a scope's activation to that of a place. */
function hopsTo(place: Place, scope: Scope): number {
  let hops = 0
  for (let at = scope.activation; at !== place.activation; hops++) {
    if (at.parent === null) throw new TemplateError("a name is used outside of its scope")
    at = at.parent
  }
  return hops
}

/** Gets the frame that many hops up. */
export function frameReader(place: Place, scope: Scope): (frame: Frame) => Frame {
  const hops = hopsTo(place, scope)
  if (hops === 0) return (frame) => frame
  return (frame) => {
    let at = frame
    // The number of hops was counted along the same chain.
    for (let i = 0; i < hops; i++) at = at.parent!
    return at
  }
}

/** Fills the places of a scope as it is entered. */
export function entering(scope: Scope): (frame: Frame) => void {
  const steps = scope.loads.flatMap(([place, load]) => fillingOf(place, load, scope))
  if (steps.length === 0) return () => {}
  return (frame) => {
    for (let i = 0; i < steps.length; i++) steps[i]!(frame)
  }
}

function fillingOf({ index }: Place, load: Load, scope: Scope): ((frame: Frame) => void)[] {
  const filling = (read: (frame: Frame) => Held) => [
    (frame: Frame): void => {
      frame.held[index] = read(frame)
    },
  ]
  switch (load.kind) {
    case "parameter":
      return []
    case "missing":
      return filling(() => missing)
    case "resolve":
      return filling((frame) => frame.context.resolve(load.name))
    case "copy": {
      const frameOf = frameReader(load.from, scope)
      return filling((frame) => frameOf(frame).held[load.from.index])
    }
  }
}
