// Writes dist. With --check it writes nothing and fails, naming what differs. Types are checked first: what does not
// hold is not built.
import { spawnSync } from "node:child_process";
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { files, root } from "./build.mjs";

const check = process.argv.includes("--check");
/** Gzipped bytes that a browser may have to load. */
const BUDGET = { js: 64 * 1024, css: 10 * 1024 };
const different = [];

async function put(path, content) {
  const old = await readFile(path).catch(() => undefined);
  if (old?.equals(Buffer.from(content))) {
    return;
  }
  if (check) {
    different.push(path);
  } else {
    await writeFile(path, content);
  }
}

const typed = spawnSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", root], { stdio: "inherit" });
if (typed.status !== 0) {
  process.exit(1);
}

const dist = join(root, "dist");
await mkdir(dist, { recursive: true });
const made = await files();
for (const name of await readdir(dist)) {
  if (!made.has(name)) {
    if (check) {
      different.push(join(dist, name));
    } else {
      await rm(join(dist, name));
    }
  }
}
for (const [name, content] of made) {
  await put(join(dist, name), content);
}

const packed = (name) => gzipSync(made.get(name), { level: 9 }).length;
const of = (kind) => [...made.keys()].filter((name) => name.endsWith(`.${kind}`));
const sum = (names) => [...names].reduce((total, name) => total + packed(name), 0);
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;
for (const [kind, most] of Object.entries(BUDGET)) {
  const size = sum(of(kind));
  console.log(`console: ${kib(size)} of ${kind} gzipped, of ${kib(most)} allowed`);
  if (size > most) {
    console.error(`error: too much ${kind}`);
    process.exitCode = 1;
  }
}
for (const path of different) {
  console.error(`error: ${path} is not what its sources give`);
  process.exitCode = 1;
}
