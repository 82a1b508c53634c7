// Writes src/schema.ts from the API's description; with --check, only compares.
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const target = new URL("../src/schema.ts", import.meta.url);
const description = new URL("../../../crates/api-gateway/openapi.yaml", import.meta.url);
const types = astToString(await openapiTS(description, { defaultNonNullable: false, silent: true }));
const made = `// Generated from crates/api-gateway/openapi.yaml by scripts/generate.mjs. Do not edit.\n\n${types}`;

if (!process.argv.includes("--check")) {
  await writeFile(target, made);
} else if ((await readFile(target, "utf8").catch(() => "")) !== made) {
  console.error("src/schema.ts is not up to date: run `.ci/clients generate`");
  process.exitCode = 1;
}
