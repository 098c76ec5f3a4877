/** The text of `--help`, made from the flag table alone. */
import { type Flag, flagGroups } from "./flags-fields"

const intro = `sluice: an OpenAI-compatible HTTP front end for inference engines

  sluice serve MODEL [flags] [-- engine flags]    serve MODEL with vLLM's engine, started here or elsewhere
  sluice serve [flags]                            simulate a built-in model profile: nothing computes its answers
  sluice render [MODEL] [flags]                   prompts to token ids and back, for engines elsewhere: no engine here
  sluice --version
`

const outro = `
  --config FILE
      YAML file of flag names and values. The command line wins over it, and it wins over the environment.

Flags of vLLM that only its engine knows (--tensor-parallel-size, --dtype, …) go on to the engine that is started here;
so does all that stands after --. An engine is started elsewhere like this, with the address and port that Sluice has:
  vllm serve MODEL --headless --data-parallel-address HOST --data-parallel-rpc-port PORT
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
  const short = flag.short === "" ? "" : `, -${flag.short}`
  return `  --${flag.name}${short}${sample}\n      ${flag.help} (default: ${flag.defaultText}${env})\n`
}
