# The server without an engine of its own: `docker build -t sluice .`, then for example
#
#     docker run --rm -p 8000:8000 -v "$PWD/my-model:/model:ro" sluice render /model
#
# What runs is what package-lock.json locks, Bun included. The second stage holds neither Node nor npm.

FROM node:24.11.1-bookworm-slim AS install
WORKDIR /app
COPY --chmod=755 package.json package-lock.json .npmrc ./
COPY --chmod=755 scripts/ensure-bun.js scripts/ensure-bun.js
# The compiler comes along because packages name it as one that they can work with; nothing that runs does.
RUN npm ci --omit=dev \
    && node scripts/ensure-bun.js \
    && mv node_modules/bun/bin/bun.exe bun \
    && rm -rf node_modules/bun node_modules/@oven node_modules/typescript node_modules/@typescript node_modules/.bin scripts

FROM debian:12.12-slim
# One folder is written to: the hub's files and what vocabularies become. It may be a volume, or stay unwritable.
RUN install -d -o 10001 -g 10001 /cache
WORKDIR /app
COPY --from=install /app ./
# Readable for the user below, whatever the checkout's modes.
COPY --chmod=755 bunfig.toml LICENSE ./
COPY --chmod=755 src src
COPY --chmod=755 wasm/tokenizer.wasm wasm/tokenizer.wasm
# The transpiler's cache is Bun's own and would be kept beside ours. Engines behind HTTP have a connection for each
# sequence, of which Bun alone allows 256.
ENV XDG_CACHE_HOME=/cache \
    BUN_RUNTIME_TRANSPILER_CACHE_PATH=0 \
    BUN_CONFIG_MAX_HTTP_REQUESTS=65535
# By number, so that Kubernetes can tell that it is not root.
USER 10001:10001
EXPOSE 8000
# For a server on port 8000 without TLS. Kubernetes asks by itself and ignores this.
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["/app/bun", "--no-install", "--no-env-file", "-e", "process.exit(await fetch('http://127.0.0.1:8000/health').then(({ ok }) => (ok ? 0 : 1), () => 1))"]
# Bun is process 1 and hears SIGTERM itself.
ENTRYPOINT ["/app/bun", "--no-install", "--no-env-file", "--config=/app/bunfig.toml", "/app/src/main.ts"]
CMD ["render", "--host", "0.0.0.0"]
