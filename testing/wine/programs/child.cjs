// For Node: runs a program with an environment of two variables, and exits with its code.
const { spawnSync } = require("node:child_process");
const [program, ...words] = process.argv.slice(2);
const { SystemRoot, DENO_WEBGPU_BACKEND } = process.env;
const env = { SystemRoot, DENO_WEBGPU_BACKEND };
process.exit(spawnSync(program, words, { env, stdio: "inherit" }).status);
