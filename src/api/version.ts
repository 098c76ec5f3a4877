import manifest from "../../package.json"

/** This server's version, as /version gives it. */
export const version: string = manifest.version

/** `system_fingerprint` of replies: the same as long as the server's code is. */
export const systemFingerprint = `sluice-${version}`
