// What console/dist is made of: one script, one sheet, an icon, the licences of what is inside, and the page that
// names them. The same sources and lockfile give the same bytes.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));
/** What is shipped to browsers; their licences go with it. */
const SHIPPED = ["preact", "@preact/signals", "@preact/signals-core"];

async function licences() {
  const texts = [];
  for (const name of SHIPPED) {
    const folder = join(root, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const text = await readFile(join(folder, "LICENSE"), "utf8");
    texts.push(`${name} ${version} (${license})\n\n${text.replaceAll("\r\n", "\n").trim()}\n`);
  }
  return Buffer.from(`The console is made with the following.\n\n${texts.join(`\n${"-".repeat(72)}\n\n`)}`);
}

async function version() {
  const manifest = await readFile(join(root, "../Cargo.toml"), "utf8");
  return /^version = "([^"]+)"/m.exec(manifest)?.[1] ?? "";
}

/** Every file by its name in dist. */
export async function files(more = {}) {
  const plain = new Map([
    ["icon.svg", await readFile(join(root, "src/icon.svg"))],
    ["licences.txt", await licences()],
  ]);
  const named = new Map();
  const names = {};
  for (const [name, content] of plain) {
    names[name] = hashed(name, content);
    named.set(names[name], content);
  }
  const bundled = await build({
    absWorkingDir: root,
    entryPoints: { console: "src/main.tsx" },
    outdir: "dist",
    entryNames: "[name].[hash]",
    bundle: true,
    minify: true,
    legalComments: "none",
    charset: "utf8",
    format: "esm",
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    define: { VERSION: JSON.stringify(await version()), LICENCES: JSON.stringify(names["licences.txt"]) },
    metafile: true,
    write: false,
    logLevel: "warning",
    ...more,
  });
  for (const file of bundled.outputFiles) {
    named.set(basename(file.path), Buffer.from(file.contents));
  }
  const outputs = Object.entries(bundled.metafile.outputs);
  const [script, { cssBundle }] = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
  names["console.js"] = basename(script);
  names["console.css"] = basename(cssBundle);
  let page = await readFile(join(root, "src/index.html"), "utf8");
  for (const [name, final] of Object.entries(names)) {
    page = page.replaceAll(`{{${name}}}`, final);
  }
  named.set("index.html", Buffer.from(page));
  return named;
}

function hashed(name, content) {
  const hash = createHash("sha256").update(content).digest("hex").slice(0, 12);
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}.${hash}${name.slice(dot)}`;
}
