/** The files of deploy/ as values, and the containers in them. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { parse, parseAllDocuments } from "yaml"
import { repository } from "../support/serve"

/** What a container of a pod says, as far as tests look at it. */
export interface Container {
  readonly image: string
  readonly command?: readonly string[]
  readonly args: readonly string[]
  readonly env: readonly {
    readonly name: string
    readonly valueFrom: { readonly secretKeyRef: { readonly name: string; readonly key: string } }
  }[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  readonly startupProbe: Probe
  readonly readinessProbe: Probe
  readonly livenessProbe: Probe
  readonly lifecycle: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } }
  readonly resources: { readonly requests: { readonly [name: string]: string } }
  readonly securityContext: { readonly [name: string]: unknown }
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[]
}

/** An HTTP probe. */
export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}

/** What runs pods. */
export interface Workload {
  readonly spec: {
    readonly replicas?: number
    readonly serviceName?: string
    readonly selector: { readonly matchLabels: Labels }
    readonly template: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly enableServiceLinks: boolean
        readonly securityContext: { readonly [name: string]: unknown }
        readonly containers: readonly [Container]
        readonly volumes: readonly { readonly name: string }[]
      }
    }
  }
}

type Labels = { readonly [name: string]: string }

/** Every object of a file of deploy/kubernetes. */
export function kubernetesObjects(file: string): { readonly kind: string; readonly metadata: { name: string } }[] {
  const text = readFileSync(join(repository, "deploy/kubernetes", file), "utf8")
  return parseAllDocuments(text).map((document) => {
    if (document.errors.length > 0) throw new Error(`${file}: ${document.errors[0]!.message}`)
    return document.toJS()
  })
}

/** The one object of a kind. The schema has been checked by another test, so the shape is taken as told. */
export function objectOf<Shape>(file: string, kind: string): Shape {
  const found = kubernetesObjects(file).filter((object) => object.kind === kind)
  if (found.length !== 1) throw new Error(`${file} has ${found.length} objects of kind ${kind}`)
  return found[0] as object as Shape
}

/** A service of deploy/compose.yaml. */
export interface ComposeService {
  readonly image: string
  readonly build?: string
  readonly command: readonly string[]
  readonly environment: Labels
  readonly ports?: readonly string[]
  readonly volumes: readonly string[]
  readonly read_only?: boolean
  readonly stop_grace_period?: string
}

/** deploy/compose.yaml. */
export function composeFile(): { readonly services: { readonly [name: string]: ComposeService } } {
  return parse(readFileSync(join(repository, "deploy/compose.yaml"), "utf8"))
}
