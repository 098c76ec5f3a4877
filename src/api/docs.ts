import { openapi } from "@elysiajs/openapi"
import { type AnyElysia, Elysia } from "elysia"
import { version } from "./version"

/** Files of the docs page that we serve ourselves, so that it works without internet. */
const assets = [
  { name: "swagger-ui-bundle.js", type: "text/javascript; charset=utf-8" },
  { name: "swagger-ui.css", type: "text/css; charset=utf-8" },
] as const

/** GET /openapi.json, made from the schemas that validate, and the page at /docs that shows it. */
export function docs(rootPath: string): AnyElysia {
  const app = new Elysia()
  for (const { name, type } of assets) {
    const file = Bun.file(new URL(import.meta.resolve(`swagger-ui-dist/${name}`)))
    app.get(`/docs/${name}`, () => new Response(file, { headers: { "content-type": type } }), {
      detail: { hide: true },
    })
  }
  return app.use(
    openapi({
      path: "/docs",
      specPath: "/openapi.json",
      provider: "swagger-ui",
      swagger: {
        theme: `${rootPath}/docs/swagger-ui.css`,
        cdn: `${rootPath}/docs/swagger-ui-bundle.js`,
        // The page would otherwise ask a validator on the internet for a badge.
        validatorUrl: "none",
        autoDarkMode: false,
      },
      documentation: {
        info: {
          title: "Sluice",
          version,
          description: "OpenAI-compatible serving front end for inference engines",
        },
        components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
      },
    }),
  )
}
