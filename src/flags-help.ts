/** The text of `--help`, made from the flag table alone. */
import { type Flag, flagGroups } from "./flags-fields"

const intro = `sluice: an OpenAI-compatible HTTP front end for inference engines

  sluice serve [MODEL] [flags]    serve MODEL, or a built-in model profile without one; answers are simulated
  sluice render                   not supported yet
  sluice --version
`

const outro = `
  --config FILE
      YAML file of flag names and values. The command line wins over it, and it wins over the environment.

Switches are written --x, --no-x or --x true|false. Dashes and underscores mean the same.
Models on the hub: HF_TOKEN, HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE.
`

/** Lists all flags by group, with units, defaults and environment variables. */
export function helpText(flags: readonly Flag[]): string {
  const groups = flagGroups.map((group) => {
    const entries = flags.filter((flag) => flag.group === group).map(helpEntry)
    return `\n${group}\n${entries.join("")}`
  })
  return `${intro}${groups.join("")}${outro}`
}

function helpEntry(flag: Flag): string {
  const sample = flag.arity === "switch" ? "" : ` ${flag.sample}`
  const env = flag.env.length === 0 ? "" : `; env ${flag.env.join(", ")}`
  return `  --${flag.name}${sample}\n      ${flag.help} (default: ${flag.defaultText}${env})\n`
}
