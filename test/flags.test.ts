import { describe, expect, test } from "bun:test"
import manifest from "../package.json" with { type: "json" }
import { type Config, defaultConfig } from "../src/config"
import { type Environment, parseFlags, sluiceVersion } from "../src/flags"
import { flagTable } from "../src/flags-table"
import { engineOnlyFlags, unsupportedFlags } from "../src/flags-vllm"
import { err, ok } from "../src/result"

type Files = { readonly [path: string]: string }

/** `programs` are the paths of what is on the PATH. */
function parse(argv: readonly string[], env: Environment = {}, files: Files = {}, programs: Files = {}) {
  const readFile = (path: string) => {
    const text = files[path]
    return text === undefined ? err("does not exist") : ok(text)
  }
  return parseFlags(argv, env, readFile, (name) => programs[name] ?? null)
}

/** The config that `serve` with these words gives. */
async function config(argv: readonly string[], env: Environment = {}, files: Files = {}) {
  const parsed = await parse(["serve", ...argv], env, files)
  if (!parsed.ok) throw new Error(parsed.error.message)
  if (parsed.value.kind !== "serve") throw new Error(`not a server: ${parsed.value.kind}`)
  return parsed.value.config
}

/** For a model's name where only its flags matter. */
const simulated = ["--engine", "simulator"]

/** The error line for these words. */
async function problem(argv: readonly string[], env: Environment = {}, files: Files = {}): Promise<string> {
  const parsed = await parse(argv, env, files)
  return parsed.ok ? `no error: ${parsed.value.kind}` : parsed.error.message
}

describe("serve", () => {
  test("alone gives the defaults", async () => {
    expect(await parse(["serve"], { HOME: "/home/ada" })).toEqual({
      ok: true,
      value: {
        kind: "serve",
        config: {
          ...defaultConfig,
          tokenizerCacheDir: "/home/ada/.cache/sluice",
          vllm: { ...defaultConfig.vllm, recordsDir: "/home/ada/.cache/sluice/engines" },
        },
        hub: {
          revision: "main",
          cacheDir: "/home/ada/.cache/huggingface/hub",
          token: null,
          endpoint: "https://huggingface.co",
          offline: false,
        },
        warnings: [],
      },
    })
  })

  test("takes every flag of the table into the configuration", async () => {
    const files = { "t.jinja": "{{ x }}", "key.pem": "k", "cert.pem": "c", "ca.pem": "a" }
    const words =
      `acme/tiny --served-model-name a b --tokenizer acme/t --tokenizer-mode DeepSeek_V32 --tokenizer-cache /t
      --revision v1
      --download-dir /d --max-model-len 8K --generation-config vllm --override-generation-config {"top_k":5}
      --engine-url http://a:1/,https://b/x --engine-api-key s --engine-health-interval-ms 7
      --engine http --engine-command vllm --data-parallel-size 3 --data-parallel-size-local 2
      --data-parallel-address [::1] --data-parallel-rpc-port 0 --data-parallel-coordinator on
      --engine-data-port 7000 --engine-data-address sluice.here --engine-records /r
      --structured-outputs-config {"backend":"outlines"} --structured-outputs-config.backend guidance
      --lora-modules a=/a {"name":"b","path":"/b","base_model_name":"m","is_3d_lora_weight":true}
      --engine-startup-timeout 1.5 --engine-hang-timeout-ms 1 --engine-utility-timeout-ms 2 --engine-stop-timeout-ms 3
      --engine-restart always --engine-restart-limit 4 --host ::1 --port 0 --uds /s --root-path /p/ --shutdown-timeout 2.5
      --sse-keep-alive-interval 15 --enable-request-id-headers --disable-fastapi-docs --enable-offline-docs
      --enable-server-load-tracking --api-server-count 1 --api-key k1 k2 --allowed-origins ["*"]
      --allowed-methods ["GET"] --allowed-headers ["x-a","x-b"] --allow-credentials --ssl-keyfile key.pem
      --ssl-certfile cert.pem --ssl-ca-certs ca.pem --chat-template t.jinja --chat-template-content-format string
      --trust-request-chat-template --trust-request-mm-kwargs --default-chat-template-kwargs {"a":{"b":1}}
      --reasoning-effort-map {"high":"max"} --response-role bot --exclude-tools-when-tool-choice-none
      --harmony-start-date 2026-03-05 --harmony-system-instructions
      --enable-scale-out --tokens-only --prompt-special-tokens parity --tool-strict-level function
      --reasoning-parser qwen3 --tool-call-parser none --enable-auto-tool-choice --return-tokens-as-token-ids
      --enable-prompt-tokens-details --enable-per-request-metrics --enable-force-include-usage --max-logprobs -1
      --responses-extensions logprobs,custom_tools
      --stream-interval 4 --enable-log-requests --enable-log-outputs --max-log-len 100 --disable-uvicorn-access-log
      --disable-access-log-for-endpoints /health,/metrics --max-request-body-size 1m --max-json-depth 9
      --max-media-request-body-size 2m --max-body-bytes-in-flight 3m
      --max-request-body-seconds 33 --max-stop-string-length 44
      --max-concurrent-requests 8 --max-num-queued-reqs 0 --max-n-sequences 7 --max-stop-strings 6
      --max-completion-prompts 5 --max-num-bad-words 4 --max-stream-buffer-size 3K --skip-model-name-validation
      --max-kept-derender-tokens 99 --cohere-format cmd3
      --sim-step-ms 0.5 --sim-prefill-ms 0 --sim-max-num-seqs 2 --sim-seed 42 --sim-allow-scripts false
      --sim-restart-ms 100`.split(/\s+/)
    const used = new Set(words.filter((word) => word.startsWith("--")).map((word) => word.slice(2)))
    expect(flagTable.map((flag) => flag.name).filter((name) => !used.has(name))).toEqual(["model"])
    expect(await config(words, {}, files)).toEqual({
      role: "serve",
      enableScaleOut: true,
      tokensOnly: true,
      host: "::1",
      port: 0,
      uds: "/s",
      tls: { keyFile: "key.pem", certFile: "cert.pem", caFile: "ca.pem" },
      model: "acme/tiny",
      tokenizer: "acme/t",
      tokenizerMode: "deepseek_v32",
      revision: "v1",
      downloadDir: "/d",
      tokenizerCacheDir: "/t",
      servedModelNames: ["a", "b"],
      contextTokensMax: 8192,
      chatTemplate: "{{ x }}",
      chatTemplateContentFormat: "string",
      trustRequestChatTemplate: true,
      trustRequestMmKwargs: true,
      cohereFormat: "cmd3",
      defaultChatTemplateKwargs: { a: { b: 1 } },
      reasoningEffortMap: { high: "max" },
      responseRole: "bot",
      promptSpecialTokens: "parity",
      reasoningParser: "qwen3",
      toolCallParser: "none",
      excludeToolsWhenToolChoiceNone: true,
      harmonyStartDate: "2026-03-05",
      harmonySystemInstructions: true,
      toolStrictLevel: "function",
      returnTokensAsTokenIds: true,
      enablePromptTokensDetails: true,
      enablePerRequestMetrics: true,
      enableForceIncludeUsage: true,
      responsesExtensions: ["custom_tools", "logprobs"],
      generationConfig: "vllm",
      overrideGenerationConfig: { top_k: 5 },
      maxLogprobs: -1,
      streamIntervalTokens: 4,
      sseKeepAliveSeconds: 15,
      enableRequestIdHeaders: true,
      enableLogRequests: true,
      enableLogOutputs: true,
      maxLogLength: 100,
      accessLog: false,
      accessLogSkippedPaths: ["/health", "/metrics"],
      docs: false,
      rootPath: "/p",
      apiKeys: ["k1", "k2"],
      cors: { origins: ["*"], methods: ["GET"], headers: ["x-a", "x-b"], credentials: true },
      shutdownTimeoutSeconds: 2.5,
      skipModelNameValidation: true,
      limits: {
        bodyBytesMax: 1_000_000,
        mediaBodyBytesMax: 2_000_000,
        bodyBytesInFlightMax: 3_000_000,
        jsonDepthMax: 9,
        bodySecondsMax: 33,
        concurrentRequestsMax: 8,
        queuedRequestsMax: 0,
        choicesMax: 7,
        stopStringsMax: 6,
        stopStringUnitsMax: 44,
        completionPromptsMax: 5,
        badWordsMax: 4,
        streamBufferedBytesMax: 3072,
        keptDerenderTokensMax: 99,
      },
      engine: "http",
      http: { urls: ["http://a:1", "https://b/x"], apiKey: "s", healthIntervalMs: 7 },
      simulator: { stepMs: 0.5, prefillMs: 0, sequencesMax: 2, seed: 42, allowScripts: false, restartMs: 100 },
      vllm: {
        dataParallelSize: 3,
        address: "::1",
        rpcPort: 0,
        dataPort: 7000,
        dataAddress: "sluice.here",
        recordsDir: "/r",
        coordinator: "on",
        // Only --engine vllm starts one (flags-engine.test.ts).
        command: null,
        restart: { policy: "always", delayMs: 1_000, delayMsMax: 60_000, restartsMax: 4, stableMs: 600_000 },
        startupTimeoutSeconds: 1.5,
        stopTimeoutMs: 3,
        hangTimeoutMs: 1,
        utilityTimeoutMs: 2,
        loraModules: [
          { name: "a", path: "/a", baseModelName: null, is3dWeight: false },
          { name: "b", path: "/b", baseModelName: "m", is3dWeight: true },
        ],
        structuredOutputsBackend: "guidance",
      },
    })
  })

  test("takes the model as first argument or by flag, and not two different ones", async () => {
    expect((await config(["m", ...simulated])).model).toBe("m")
    expect((await config(["--model", "m", ...simulated])).model).toBe("m")
    expect((await config(["--port", "1", "m", "--model=m", ...simulated])).model).toBe("m")
    expect(await problem(["serve", "m", "--model", "n"])).toBe("two different models: m and --model n")
    expect(await problem(["serve", "m", "n"])).toBe('unexpected argument "n": the model is already m')
  })

  test("does not share anything between two readings", async () => {
    await config(["--allow-credentials", "--max-json-depth", "3", "--sim-seed", "1"])
    expect(await config([])).toEqual(defaultConfig)
  })
})

describe("a flag", () => {
  test("may be written with underscores, and with its value after an equals sign", async () => {
    expect((await config(["--max_model_len=10"])).contextTokensMax).toBe(10)
    expect((await config(["--api-key=-starts-with-a-dash"])).apiKeys).toEqual(["-starts-with-a-dash"])
    expect((await config(["--response-role=a=b"])).responseRole).toBe("a=b")
  })

  test("that is a switch takes --x, --no-x, true, false and x=value, and leaves other words alone", async () => {
    const requests = async (...words: string[]) => (await config(words)).enableLogRequests
    expect(await requests("--enable-log-requests")).toBe(true)
    expect(await requests("--enable-log-requests", "--no-enable-log-requests")).toBe(false)
    expect(await requests("--enable_log_requests", "False")).toBe(false)
    expect(await requests("--enable-log-requests=1")).toBe(true)
    expect((await config(["--enable-log-requests", "acme/tiny", ...simulated])).model).toBe("acme/tiny")
    expect((await config(["--sim-allow-scripts", "false"])).simulator.allowScripts).toBe(false)
    expect(await problem(["serve", "--sim-allow-scripts", "maybe"])).toContain("expected true or false")
    expect((await config(["--no-disable-fastapi-docs"])).docs).toBe(true)
    expect(await problem(["serve", "--no-enable-log-requests=true"])).toBe("--no-enable-log-requests takes no value")
    expect(await problem(["serve", "--no-port"])).toBe("unknown flag --no-port: did you mean --port?")
  })

  test("with several values takes them in a row, repeated, and once each", async () => {
    expect((await config(["--api-key", "a", "b", "--port", "1", "--api-key", "c", "a"])).apiKeys).toEqual([
      "a",
      "b",
      "c",
    ])
    expect(await problem(["serve", "--api-key", ""])).toBe('--api-key "": expected a text that is not empty')
  })

  test("given twice counts as given last", async () => {
    expect((await config(["--port", "1", "--port", "2"])).port).toBe(2)
  })

  test.each([
    ["1000", 1000],
    ["32k", 32_000],
    ["32K", 32_768],
    ["25.6k", 25_600],
    ["1m", 1_000_000],
    ["1M", 1_048_576],
    ["auto", null],
    ["-1", null],
  ] as const)("for the window takes %s", async (text, tokens) => {
    expect((await config(["--max-model-len", text])).contextTokensMax).toBe(tokens)
  })

  test.each([
    ["--port", "70000", "a whole number 0–65535"],
    ["--port", "80x", "a whole number 0–65535"],
    ["--port", "1.5", "a whole number 0–65535"],
    ["--max-model-len", "0", "auto, -1, or a whole number from 1; 8k is 8000, 8K is 8192"],
    ["--max-model-len", "1.5K", "auto, -1, or a whole number from 1; 8k is 8000, 8K is 8192"],
    ["--max-model-len", "9999999999999999T", "auto, -1, or a whole number from 1; 8k is 8000, 8K is 8192"],
    ["--max-logprobs", "-2", "a whole number from -1"],
    ["--shutdown-timeout", "1e3", "a number 0–2147483"],
    ["--shutdown-timeout", "9999999", "a number 0–2147483"],
    ["--sim-step-ms", "NaN", "a number 0–2147483647"],
    ["--chat-template-content-format", "xml", "one of auto, string, openai"],
    ["--allowed-origins", "*", 'a JSON list of strings, such as ["*"]'],
    ["--allowed-origins", "[1]", 'a JSON list of strings, such as ["*"]'],
    ["--override-generation-config", "[]", "a JSON object"],
    ["--reasoning-effort-map", '{"high":1}', "a JSON object of strings"],
    [
      "--responses-extensions",
      "logprobs,mcp",
      "none, all, or some of custom_tools, namespace_tools, allowed_tools, logprobs, with commas between",
    ],
    ["--disable-access-log-for-endpoints", "/a,b", "paths that start with /, with commas between"],
    ["--root-path", "proxy", "a path that starts with /"],
    ["--host", "", "a text that is not empty"],
    ["--engine", "magic", "one of auto, simulator, vllm, http"],
    ["--engine-url", "a:1,b:2", "http or https addresses, with commas between"],
    ["--engine-url", "http://a?b", "http or https addresses, with commas between"],
    ["--engine-command", "vllm 'serve", "a single quote that is closed"],
    ["--engine-command", " ", "a command and its arguments"],
    ["--engine-restart", "maybe", "one of never, on-failure, always"],
    ["--data-parallel-size", "0", "a whole number 1–65535"],
    ["--data-parallel-address", "a:1", "a host name or address, without scheme and port"],
    ["--data-parallel-address", "tcp://a:1", "a host name or address, without scheme and port"],
    ["--structured-outputs-config", "xgrammar", "a JSON object"],
    [
      "--structured-outputs-config",
      '{"backend":"magic"}',
      "a backend out of auto, xgrammar, guidance, outlines, lm-format-enforcer",
    ],
    ["--lora-modules", "=x", 'NAME=PATH or {"name": …, "path": …, "base_model_name": …}'],
    ["--lora-modules", '{"name":"a","path":"p","rank":8}', 'NAME=PATH or {"name": …, "path": …, "base_model_name": …}'],
    ["--lora-modules", '[{"name":"a","path":"p"},{"name":"a","path":"q"}]', "each adapter's name once"],
    ["--tokenizer-mode", "slow", "one of auto, hf, mistral, deepseek_v32, deepseek_v4, deepseek_v41"],
    ["--api-server-count", "2", "1; the rest is not supported yet"],
  ])("%s refuses %p", async (flag, text, expected) => {
    expect(await problem(["serve", `${flag}=${text}`])).toBe(`${flag} ${JSON.stringify(text)}: expected ${expected}`)
  })

  test("without its value says what belongs there", async () => {
    expect(await problem(["serve", "--port"])).toBe("--port needs a value: N")
    expect(await problem(["serve", "--port", "--host"])).toBe("--port needs a value: N")
    expect(await problem(["serve", "--api-key"])).toBe("--api-key needs a value: KEY …")
    expect(await problem(["serve", "--config"])).toBe("--config needs a value: FILE")
  })

  test("of vLLM that is not built says so, whichever way it is written", async () => {
    for (const name of unsupportedFlags) {
      expect(await problem(["serve", `--${name}`, "1"])).toBe(`--${name} is not supported yet`)
    }
    expect(await problem(["serve", "--data_parallel_rank=2"])).toBe("--data_parallel_rank is not supported yet")
    expect(await problem(["serve", "--no-enable-elastic-ep"])).toBe("--no-enable-elastic-ep is not supported yet")
    expect(await problem(["serve", "-dpr", "1"])).toBe("-dpr is not supported yet")
    const built = [...flagTable, ...engineOnlyFlags].map((flag) => flag.name)
    expect(built.filter((name) => unsupportedFlags.has(name))).toEqual([])
    expect(new Set(built).size).toBe(built.length)
  })

  test("that nobody knows names the nearest one, if there is one", async () => {
    expect(await problem(["serve", "--sreved-model-name", "x"])).toBe(
      "unknown flag --sreved-model-name: did you mean --served-model-name?",
    )
    expect(await problem(["serve", "--completely-else"])).toBe("unknown flag --completely-else")
    expect(await problem(["serve", "-zz", "2"])).toBe("unknown flag -zz")
  })

  test("that needs another one says which", async () => {
    expect(await problem(["serve", "--enable-log-outputs"])).toBe("--enable-log-outputs needs --enable-log-requests")
    expect(await problem(["serve", "--tokenizer", "x"])).toBe(
      "--tokenizer needs a model: the built-in profile has its own",
    )
    expect(await problem(["serve", "--revision", "x"])).toBe("--revision needs a model")
    expect(await problem(["serve", "--ssl-keyfile", "x"])).toBe("--ssl-keyfile needs --ssl-certfile")
    expect(await problem(["serve", "--ssl-ca-certs", "x"])).toBe("--ssl-ca-certs needs --ssl-certfile")
  })

  test("with a TLS file looks whether it is there; the certificate's file may hold the key", async () => {
    expect(await problem(["serve", "--ssl-certfile", "no.pem"])).toBe("--ssl-certfile no.pem: does not exist")
    expect((await config(["--ssl-certfile", "c.pem"], {}, { "c.pem": "both" })).tls).toEqual({
      keyFile: "c.pem",
      certFile: "c.pem",
      caFile: null,
    })
  })
})

describe("--chat-template", () => {
  test("is a file's text", async () => {
    expect((await config(["--chat-template", "a.jinja"], {}, { "a.jinja": "{{ a }}\\n" })).chatTemplate).toBe(
      "{{ a }}\\n",
    )
  })

  test("is the template itself, where \\n stands for a line break", async () => {
    expect((await config(["--chat-template", "{{ a }}\\nü"])).chatTemplate).toBe("{{ a }}\nü")
    expect((await config(["--chat-template", "line\nline"])).chatTemplate).toBe("line\nline")
  })

  test("that looks like a path must exist", async () => {
    expect(await problem(["serve", "--chat-template", "./no.jinja"])).toBe("--chat-template ./no.jinja: does not exist")
  })
})

describe("the environment", () => {
  test("fills in what the command line leaves out", async () => {
    const env = {
      VLLM_API_KEY: "k",
      VLLM_MAX_N_SEQUENCES: "2",
      VLLM_MAX_STOP_STRINGS: "3",
      VLLM_MAX_COMPLETION_PROMPTS: "4",
      VLLM_MAX_NUM_BAD_WORDS: "5",
      VLLM_HTTP_MAX_REQUEST_BODY_SIZE: "6",
      VLLM_SKIP_MODEL_NAME_VALIDATION: "1",
    }
    const { limits, apiKeys, skipModelNameValidation } = await config(["--max-stop-strings", "9"], env)
    expect({ apiKeys, skipModelNameValidation, limits }).toEqual({
      apiKeys: ["k"],
      skipModelNameValidation: true,
      limits: {
        ...defaultConfig.limits,
        bodyBytesMax: 6,
        choicesMax: 2,
        stopStringsMax: 9,
        completionPromptsMax: 4,
        badWordsMax: 5,
      },
    })
    expect((await config(["--api-key", "a"], env)).apiKeys).toEqual(["a"])
  })

  test("counts an empty variable as unset and names a bad one", async () => {
    expect((await config([], { VLLM_API_KEY: "", VLLM_MAX_N_SEQUENCES: "" })).apiKeys).toEqual([])
    expect(await problem(["serve"], { VLLM_MAX_N_SEQUENCES: "many" })).toBe(
      'VLLM_MAX_N_SEQUENCES "many": expected a whole number from 1',
    )
  })

  test("warns of variables that are not built", async () => {
    expect(await parse(["serve"], { VLLM_SERVER_DEV_MODE: "1", VLLM_ENABLE_COHERE_API: "" })).toMatchObject({
      value: { warnings: ["VLLM_SERVER_DEV_MODE is not supported yet"] },
    })
  })

  test("says where vocabularies are kept", async () => {
    const folder = async (env: Environment, ...words: string[]) => (await config(words, env)).tokenizerCacheDir
    expect(await folder({ XDG_CACHE_HOME: "/x", HOME: "/home/a" })).toBe("/x/sluice")
    expect(await folder({ XDG_CACHE_HOME: "x", HOME: "/home/a" })).toBe("/home/a/.cache/sluice")
    expect(await folder({})).toBeNull()
    expect(await folder({ HOME: "/home/a" }, "--tokenizer-cache", "off")).toBeNull()
    expect(await folder({ HOME: "/home/a" }, "--tokenizer-cache", "~/t")).toBe("/home/a/t")
    expect(await folder({}, "--tokenizer-cache", "./off")).toBe("./off")
  })

  test("says where it is kept what engines are", async () => {
    const serve = ["m", "--engine", "vllm", "--data-parallel-size-local", "0"]
    const folder = async (env: Environment, ...words: string[]) =>
      (await config([...serve, ...words], env)).vllm.recordsDir
    expect(await folder({ XDG_CACHE_HOME: "/x" }, "--tokenizer-cache", "off")).toBe("/x/sluice/engines")
    expect(await folder({ HOME: "/home/a" }, "--engine-records", "off")).toBeNull()
    expect(await folder({ HOME: "/home/a" }, "--engine-records", "~/r")).toBe("/home/a/r")
  })

  test("says where the hub and its cache are", async () => {
    const hub = async (env: Environment, ...words: string[]) => {
      const parsed = await parse(["serve", ...words], env)
      return parsed.ok && parsed.value.kind === "serve" ? parsed.value.hub : parsed
    }
    const base = { revision: "main", token: null, endpoint: "https://huggingface.co", offline: false }
    expect(await hub({ HF_HOME: "/h" })).toEqual({ ...base, cacheDir: "/h/hub" })
    expect(await hub({ XDG_CACHE_HOME: "/x" })).toEqual({ ...base, cacheDir: "/x/huggingface/hub" })
    expect(await hub({ HF_HUB_CACHE: "~/c", HF_HOME: "/h", HOME: "/home/a" })).toEqual({
      ...base,
      cacheDir: "/home/a/c",
    })
    expect(await hub({ HUGGINGFACE_HUB_CACHE: "/o" }, "--download-dir", "/d")).toEqual({ ...base, cacheDir: "/d" })
    expect(
      await hub(
        { HF_HOME: "/h", HF_TOKEN: " t\n", HF_ENDPOINT: "http://127.0.0.1:1/", TRANSFORMERS_OFFLINE: "1" },
        "m",
        ...simulated,
        "--revision",
        "r",
      ),
    ).toEqual({ revision: "r", token: "t", endpoint: "http://127.0.0.1:1", offline: true, cacheDir: "/h/hub" })
    expect(await problem(["serve"], { HF_ENDPOINT: "file:///x" })).toBe(
      'HF_ENDPOINT "file:///x": expected an http or https address',
    )
  })
})

describe("--config", () => {
  const file = (text: string): Files => ({ "c.yaml": text })

  test("sets the same flags, under the command line and over the environment", async () => {
    const yaml = `
# a comment
model: acme/tiny
port: 9000
served_model_name: [a, b]
api-key: 0123
enable-log-requests: true
allow-credentials: no
allowed-origins: ["*"]
allowed-methods: '["GET"]'
max-model-len: 8k
default-chat-template-kwargs:
  thinking: false
max-n-sequences: 3
`
    const env = { VLLM_MAX_N_SEQUENCES: "9", VLLM_MAX_STOP_STRINGS: "8" }
    const read = await config(["--config", "c.yaml", "--port", "1", ...simulated], env, file(yaml))
    expect(read).toEqual({
      ...defaultConfig,
      model: "acme/tiny",
      port: 1,
      servedModelNames: ["a", "b"],
      apiKeys: ["0123"],
      enableLogRequests: true,
      cors: { ...defaultConfig.cors, origins: ["*"], methods: ["GET"] },
      contextTokensMax: 8000,
      defaultChatTemplateKwargs: { thinking: false },
      limits: { ...defaultConfig.limits, choicesMax: 3, stopStringsMax: 8 },
    })
    expect((await config(["other", "--config=c.yaml", ...simulated], {}, file(yaml))).model).toBe("other")
  })

  test("may be empty", async () => {
    expect(await config(["--config", "c.yaml"], {}, file("# nothing\n"))).toEqual(defaultConfig)
  })

  test.each([
    ["prot: 1", "prot: unknown flag --prot: did you mean --port?"],
    ["grpc: true", "grpc: --grpc is not supported yet"],
    ["port: many", 'port "many": expected a whole number 0–65535'],
    ["port: [1]", 'port "[1]": expected a whole number 0–65535'],
    ["port:", "port has no value"],
    ["port: 1\nport: 2", "not YAML: Map keys must be unique at line 2, column 1"],
    ["max-log-len: 1\nmax_log_len: 2", "max_log_len is given twice"],
    ["no-allow-credentials: true", "no-allow-credentials: write allow-credentials: false"],
    ["config: x.yaml", "config: unknown flag --config"],
    ["- port", "expected a mapping of flag names to values"],
    [
      "port: {",
      "not YAML: Flow map in block collection must be sufficiently indented and end with a } at line 1, column 8",
    ],
  ])("with %p names the file and the key", async (text, expected) => {
    expect(await problem(["serve", "--config", "c.yaml"], {}, file(text))).toBe(`--config c.yaml: ${expected}`)
  })

  test("that is not there is said", async () => {
    expect(await problem(["serve", "--config", "no.yaml"])).toBe("--config no.yaml: does not exist")
  })
})

describe("other commands", () => {
  test("help lists every flag with its default and unit", async () => {
    for (const argv of [["--help"], ["serve", "-h"], ["serve", "--help=all", "--nonsense"], ["render", "--help"]]) {
      const parsed = await parse(argv)
      if (!parsed.ok || parsed.value.kind !== "help") throw new Error(`no help for ${argv.join(" ")}`)
      for (const flag of flagTable) expect(parsed.value.text).toContain(`\n  --${flag.name}`)
      expect(parsed.value.text).toContain("--shutdown-timeout SECONDS\n")
      expect(parsed.value.text).toContain("0 = abort at once. (default: 0 seconds)")
      expect(parsed.value.text).toContain("(default: 128; env VLLM_MAX_STOP_STRINGS)")
      expect(Math.max(...parsed.value.text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120)
    }
  })

  test("the version is the package's", async () => {
    expect(await parse(["--version"])).toEqual({ ok: true, value: { kind: "version", text: manifest.version } })
    expect(sluiceVersion).toBe(manifest.version)
  })

  test("render has scale-out on and no engine, whatever is on the PATH", async () => {
    const render = async (words: readonly string[], env: Environment = {}) => {
      const parsed = await parse(["render", ...words], env, {}, { vllm: "/bin/vllm" })
      if (!parsed.ok) return parsed.error.message
      if (parsed.value.kind !== "serve") throw new Error(`not a server: ${parsed.value.kind}`)
      return { config: parsed.value.config, warnings: parsed.value.warnings }
    }
    const plain: Config = { ...defaultConfig, role: "render", enableScaleOut: true, model: "acme/tiny" }
    expect(await render(["acme/tiny"])).toEqual({ config: plain, warnings: [] })
    const off = { config: { ...plain, enableScaleOut: false }, warnings: [] }
    expect(await render(["acme/tiny", "--no-enable-scale-out"])).toEqual(off)
    expect(await render(["acme/tiny"], { VLLM_ENABLE_SCALE_OUT_ENDPOINTS: "0" })).toEqual(off)
    expect(await render(["--sim-seed", "1", "-tp", "2", "--", "--x"])).toMatchObject({
      warnings: ["without effect on sluice render: --sim-seed, -tp, what stands after --"],
    })
    expect(await render(["--tokens-only"])).toBe("--tokens-only is for serve: render has nothing but text")
  })

  test("serve has scale-out by flag or variable, the flag first, and with --tokens-only always", async () => {
    const variable = "VLLM_ENABLE_SCALE_OUT_ENDPOINTS"
    const on = async (words: readonly string[], env: Environment = {}) => (await config(words, env)).enableScaleOut
    expect(await on([])).toBe(false)
    expect(await on(["--enable-scale-out"])).toBe(true)
    expect(await on([], { [variable]: "1" })).toBe(true)
    expect(await on([], { [variable]: "0" })).toBe(false)
    expect(await on(["--no-enable-scale-out"], { [variable]: "1" })).toBe(false)
    expect(await on(["--tokens-only"])).toBe(true)
  })

  test("anything unknown ends with one line", async () => {
    expect(await problem([])).toBe("no command given: expected serve or render; sluice --help lists the flags")
    expect(await problem(["sreve"])).toBe(
      'unknown command "sreve": expected serve or render; sluice --help lists the flags',
    )
  })
})
