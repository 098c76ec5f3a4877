/** All routes of the role without an engine: render, derender, and what stands around them. */
import type { RenderRoom } from "./room"
import type { Route } from "./route"
import { type AppFetch, createRouter } from "./router"
import { renderRoleRoutes } from "./scale-out/routes"
import { stateRoutes } from "./state-routes"
import { vocabularyRoutes } from "./vocabulary-routes"

/** The server's fetch function. */
export function createRenderApp(room: RenderRoom): AppFetch {
  return createRouter(room, renderAppRoutes(room))
}

/** Every route of the role, for the router and for tests that walk them. */
function renderAppRoutes(room: RenderRoom): Route[] {
  return [...vocabularyRoutes(room), ...renderRoleRoutes(room), ...stateRoutes(room)]
}
