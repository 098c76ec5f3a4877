/**
 * deploy/: every file against its schema, and our servers started with exactly the arguments and the variables that stand
 * there, against a model's folder. In place of vLLM stands our own token-in service with a simulator.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import manifest from "../../package.json"
import { makeQwen3Folder } from "../support/qwen3-folder"
import { repository, type ServedProcess, serve } from "../support/serve"
import { instructions } from "./image"
import { type Container, composeFile, kubernetesObjects, objectOf, type Probe, type Workload } from "./manifests"
import { composeFaults, kubernetesFault, kubernetesTypeFaults } from "./schemas"

const files = readdirSync(join(repository, "deploy/kubernetes")).sort()
const keys = { "api-key": "clients", "engine-api-key": "engines" } as const

let model = ""
let engine: ServedProcess
beforeAll(async () => {
  model = makeQwen3Folder()
  const flags = [model, "--enable-scale-out", "--engine", "simulator", "--api-key", keys["engine-api-key"]]
  engine = await serve(flags)
})
afterAll(async () => {
  await engine[Symbol.asyncDispose]()
  rmSync(model, { recursive: true })
})

describe("deploy/kubernetes", () => {
  test("has the files that the documents name", () => {
    expect(files).toEqual(["engine.yaml", "front.yaml", "renderer.yaml"])
  })

  for (const file of files) {
    test(`${file} holds to Kubernetes' schema`, async () => {
      const objects = kubernetesObjects(file)
      expect(objects.length).toBeGreaterThan(1)
      expect(await Promise.all(objects.map(kubernetesFault))).toEqual(objects.map(() => null))
    })

    test(`${file} has no field that Kubernetes does not know`, () => {
      expect(kubernetesTypeFaults(kubernetesObjects(file))).toBe("")
    })
  }

  test("the schema finds a wrong type, and the compiler a wrong name", async () => {
    const [deployment] = kubernetesObjects("renderer.yaml")
    expect(await kubernetesFault({ ...deployment, spec: { replicas: "2" } })).toContain("replicas")
    expect(kubernetesTypeFaults([{ ...deployment, spec: { replicaz: 2 } }])).toContain("replicaz")
  })

  for (const [file, kind] of [
    ["renderer.yaml", "Deployment"],
    ["front.yaml", "Deployment"],
    ["engine.yaml", "StatefulSet"],
  ] as const) {
    test(`${file}: labels, ports, probes and volumes name each other`, () => {
      const { spec } = objectOf<Workload>(file, kind)
      const { labels } = spec.template.metadata
      const pod = spec.template.spec
      const [container] = pod.containers
      expect(spec.selector.matchLabels).toEqual(labels)
      const service = objectOf<{ metadata: { name: string }; spec: { selector: object; ports: object[] } }>(
        file,
        "Service",
      )
      expect(service.spec.selector).toEqual(labels)
      expect(service.spec.ports).toEqual([{ name: "http", port: 8000, targetPort: "http" }])
      expect(container.ports).toEqual([{ name: "http", containerPort: 8000 }])
      expect(container.args).toContain("--port=8000")
      for (const probe of probes(container)) expect(probe.httpGet.port).toBe("http")
      expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(pod.volumes.map(({ name }) => name).sort())
      expect(pod.enableServiceLinks).toBe(false)
      for (const { valueFrom } of container.env) {
        expect(valueFrom.secretKeyRef.name).toBe("sluice")
        expect(Object.keys(keys)).toContain(valueFrom.secretKeyRef.key)
      }
    })
  }

  for (const file of ["renderer.yaml", "front.yaml"]) {
    const { spec } = objectOf<Workload>(file, "Deployment")
    const pod = spec.template.spec
    const [container] = pod.containers

    test(`${file}: the image is this version's, and its user and folders are those of the Dockerfile`, () => {
      expect(container.image).toBe(`sluice:${manifest.version}`)
      const user = instructions().find(({ keyword }) => keyword === "USER")!.given
      expect(`${pod.securityContext.runAsUser}:${pod.securityContext.runAsGroup}`).toBe(user)
      expect(instructions().find(({ keyword }) => keyword === "ENV")!.given).toContain("XDG_CACHE_HOME=/cache")
      expect(container.volumeMounts).toContainEqual({ name: "cache", mountPath: "/cache" })
    })

    test(`${file}: what Kubernetes calls restricted`, () => {
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } })
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
    })

    test(`${file}: running requests have their time before the pod is killed`, () => {
      const { command } = container.lifecycle.preStop.exec
      expect(command[0]).toBe("sleep")
      const drainSeconds = Number(flag(container.args, "shutdown-timeout"))
      expect(drainSeconds).toBeGreaterThan(0)
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(Number(command[1]) + drainSeconds)
    })

    test(`${file}: the autoscaler has the number of pods and a measure to go by`, () => {
      const scaler = objectOf<{ spec: { scaleTargetRef: object; metrics: object[] } }>(file, "HorizontalPodAutoscaler")
      const { name } = kubernetesObjects(file)[0]!.metadata
      expect(scaler.spec.scaleTargetRef).toEqual({ apiVersion: "apps/v1", kind: "Deployment", name })
      expect(scaler.spec.metrics).toMatchObject([{ resource: { name: "cpu", target: { type: "Utilization" } } }])
      // A share of what is requested.
      expect(container.resources.requests.cpu).toBeDefined()
      expect(spec.replicas).toBeUndefined()
    })
  }

  test("renderer.yaml starts a renderer with its key, whose probes are good", async () => {
    const [container] = objectOf<Workload>("renderer.yaml", "Deployment").spec.template.spec.containers
    await using server = await start(container.args, variables(container))
    for (const probe of probes(container)) expect(await status(server, probe.httpGet.path)).toBe(200)
    await expectKey(server)
    const { token_ids } = (await post(server, "/v1/chat/completions/render", chat)) as { token_ids: number[] }
    expect(token_ids.length).toBeGreaterThan(3)
    expect(await server.stop("SIGTERM")).toBe(0)
  })

  test("front.yaml starts a front that is ready, and answers, when its engines do", async () => {
    const [container] = objectOf<Workload>("front.yaml", "Deployment").spec.template.spec.containers
    await using server = await start(container.args, variables(container))
    await until(async () => (await status(server, container.readinessProbe.httpGet.path)) === 200)
    for (const probe of probes(container)) expect(await status(server, probe.httpGet.path)).toBe(200)
    await expectKey(server)
    expect(await post(server, "/v1/chat/completions", chat)).toMatchObject({ choices: [{ finish_reason: "length" }] })
    expect(await server.stop("SIGTERM")).toBe(0)
  })

  test("front.yaml's pod without engines is not ready, and is not started again for it", async () => {
    const [container] = objectOf<Workload>("front.yaml", "Deployment").spec.template.spec.containers
    const gone = await serve([model, "--enable-scale-out", "--engine", "simulator"])
    await gone.stop("SIGTERM")
    await using server = await start(container.args, variables(container), gone.url)
    await until(async () => (await status(server, container.readinessProbe.httpGet.path)) === 503)
    expect(await status(server, container.startupProbe.httpGet.path)).toBe(200)
    expect(await status(server, container.livenessProbe.httpGet.path)).toBe(200)
  })

  test("front.yaml asks for each pod of engine.yaml by its name", () => {
    const [container] = objectOf<Workload>("front.yaml", "Deployment").spec.template.spec.containers
    const { metadata, spec } = objectOf<Workload & { metadata: { name: string } }>("engine.yaml", "StatefulSet")
    const pods = Array.from(
      { length: spec.replicas! },
      (_, i) => `http://${metadata.name}-${i}.${spec.serviceName}:8000`,
    )
    expect(flag(container.args, "engine-url")).toBe(pods.join(","))
  })
})

describe("deploy/compose.yaml", () => {
  const { services } = composeFile()

  test("holds to the schema of the Compose specification, which finds a wrong name", () => {
    expect(composeFaults(composeFile())).toEqual([])
    expect(composeFaults({ services: { front: { imagee: "sluice" } } })).toMatchObject([
      { params: { additionalProperty: "imagee" } },
    ])
  })

  test("makes this version's image of the repository", () => {
    for (const name of ["front", "renderer"]) {
      expect(services[name]).toMatchObject({ image: `sluice:${manifest.version}`, build: "..", read_only: true })
    }
  })

  for (const name of ["front", "renderer"]) {
    test(`${name} starts and answers`, async () => {
      const { command, environment } = services[name]!
      // `${NAME:?words}` stands for the variable NAME.
      const given = { API_KEY: keys["api-key"], ENGINE_API_KEY: keys["engine-api-key"] } as const
      const env = Object.fromEntries(
        Object.entries(environment).map(([variable, text]) => {
          const from = /^\$\{(API_KEY|ENGINE_API_KEY):\?[^}]+\}$/.exec(text)?.[1] as keyof typeof given
          return [variable, given[from]]
        }),
      )
      await using server = await start(command, env)
      await until(async () => (await status(server, "/health")) === 200)
      await expectKey(server)
      const path = name === "front" ? "/v1/chat/completions" : "/v1/chat/completions/render"
      expect(await post(server, path, chat)).toMatchObject({ model: "model" })
      const seconds = Number(/^(\d+)s$/.exec(services[name]!.stop_grace_period!)![1])
      expect(seconds).toBeGreaterThan(Number(flag(command, "shutdown-timeout")))
    })
  }
})

const chat = { model: "model", messages: [{ role: "user", content: "Hello" }], max_tokens: 3 }

/** A server of ours as the words of a manifest say; only addresses and the model's place are this machine's. */
function start(
  args: readonly string[],
  env: { [name: string]: string },
  engineUrl = engine.url,
): Promise<ServedProcess> {
  const words = args
    .filter((word) => word !== "--port=8000") // `serve` says 0
    .map((word) => (word === "/model" ? model : word))
    .map((word) => word.replace("0.0.0.0", "127.0.0.1").replace(/http:\/\/engine[-.\w]*:8000/g, engineUrl))
  return serve([], { command: [process.execPath, "--no-install", "src/main.ts", ...words], env })
}

/** A container's variables, with the values that the Secret has here. */
function variables({ env }: Container): { [name: string]: string } {
  const secrets: { readonly [key: string]: string } = keys
  return Object.fromEntries(env.map(({ name, valueFrom }) => [name, secrets[valueFrom.secretKeyRef.key]!]))
}

function probes({ startupProbe, readinessProbe, livenessProbe }: Container): Probe[] {
  return [startupProbe, readinessProbe, livenessProbe]
}

function flag(args: readonly string[], name: string): string | undefined {
  return args.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3)
}

async function status(server: ServedProcess, path: string): Promise<number> {
  return (await fetch(`${server.url}${path}`)).status
}

async function expectKey(server: ServedProcess): Promise<void> {
  expect(await status(server, "/v1/models")).toBe(401)
}

async function post(server: ServedProcess, path: string, body: object): Promise<unknown> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${keys["api-key"]}` }
  const reply = await fetch(`${server.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) })
  return await reply.json()
}

/** Waits for what comes by itself. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 20_000
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error("it did not come")
    await Bun.sleep(20)
  }
}
