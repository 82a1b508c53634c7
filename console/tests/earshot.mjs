// Runs what the tests run against: `earshot dev --demo`, its simulator, receivers, and Chromium. Nothing is mocked.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "../scripts/dev.mjs";

export const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const binary = process.env.EARSHOT_BIN ?? join(root, "target/debug/earshot");
const START_MS = 120_000;

/** Until `probe` gives something true; what it gives then. */
export async function until(what, probe, timeoutMs = 120_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const found = await probe();
    if (found) {
      return found;
    }
    assert.ok(Date.now() < end, `waited in vain for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

export class Earshot {
  static async start(environment = {}) {
    assert.ok(existsSync(binary), `${binary} is not built`);
    const home = mkdtempSync(join(tmpdir(), "earshot-console-"));
    const listen = ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"];
    // What the environment says of servers is for other tests; this one has its own.
    const { DATABASE_URL, AMQP_URL, ...inherited } = process.env;
    const child = spawn(binary, ["dev", "--demo", "--data-dir", join(home, "data"), ...listen], {
      env: { ...inherited, EARSHOT_LOG__FILTER: "warn", ...environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const log = [];
    child.stderr.on("data", (chunk) => { log.push(chunk); log.splice(0, Math.max(0, log.length - 200)); });
    const line = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => { child.kill("SIGKILL"); reject(new Error(`earshot is not ready: ${log.join("")}`)); }, START_MS);
      child.once("exit", (code) => { clearTimeout(timer); reject(new Error(`earshot ended with ${code}: ${log.join("")}`)); });
      createInterface({ input: child.stdout }).once("line", (text) => { clearTimeout(timer); resolve(text); });
    });
    const told = Object.fromEntries(line.split(" ").slice(2).map((word) => [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]));
    // For those who change the console: its sources over the gateway, without building that.
    const sources = process.env.CONSOLE_FROM_SOURCES ? await serve(told.api, 0, { once: true }) : undefined;
    return new Earshot(child, home, sources?.url ?? told.api, told.key, sources, log);
  }

  /** `log` is the end of what it has logged. */
  constructor(child, home, url, key, sources, log) {
    Object.assign(this, { child, home, url, key, sources, log, data: join(home, "data") });
    this.console = `${url}/console/`;
  }

  async stop() {
    this.sources?.stop();
    if (this.child.exitCode === null) {
      const ended = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill("SIGTERM");
      const timer = setTimeout(() => this.child.kill("SIGKILL"), 120_000);
      await ended;
      clearTimeout(timer);
    }
    rmSync(this.home, { recursive: true, force: true });
  }

  keys(...words) {
    return execFileSync(binary, ["keys", ...words, "--data-dir", this.data], { encoding: "utf8" }).trim();
  }

  makeKey(role, ...more) {
    const printed = this.keys("create", "--account", "dev", "--role", role, ...more);
    return /esk_\S+/.exec(printed)[0];
  }

  async call(method, path, body, key = this.key) {
    const answer = await fetch(`${this.url}/v1/${path}`, {
      method, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const found = await answer.json();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${JSON.stringify(found)}`);
    return found;
  }

  get simulator() {
    return `http://127.0.0.1:${JSON.parse(readFileSync(join(this.data, "demo.json"), "utf8")).simulator_port}`;
  }

  /** New posts of the simulated platforms. */
  async publish(posts) {
    const answer = await fetch(`${this.simulator}/control/posts`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(posts) });
    assert.ok(answer.ok, await answer.text());
  }

  /** The demo customer's Namespace, Manager and Connection, once there are Scans. */
  async demo() {
    const namespace = await until("the demo customer", async () => (await this.call("GET", "namespaces")).namespaces[0]?.name);
    const scans = await until("Scans", async () => {
      const found = (await this.call("GET", `${namespace}/managers/-/scans?pageSize=100`).catch(() => ({ scans: [] }))).scans;
      return found.length >= 3 && found;
    });
    const manager = scans[0].name.split("/scans/")[0];
    const connection = (await this.call("GET", `${namespace}/connections`)).connections[0].name;
    return { namespace, manager, connection, scan: scans[0].name };
  }
}

/** A server of a customer's, which answers as it is told. */
export async function receiver() {
  const state = { status: 204, body: "", got: [] };
  const server = createServer((request, answer) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      state.got.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
      answer.writeHead(state.status).end(state.body);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.url = `http://127.0.0.1:${server.address().port}/hook`;
  state.stop = () => { server.closeAllConnections(); server.close(); };
  return state;
}

/** A proxy that serves a gateway below a path of its own, as operators do. */
export async function below(prefix, url) {
  const server = createServer((incoming, answer) => {
    if (!incoming.url.startsWith(`${prefix}/`)) {
      answer.writeHead(404).end();
      return;
    }
    const onward = request(new URL(incoming.url.slice(prefix.length), url), { method: incoming.method, headers: incoming.headers }, (came) => {
      answer.writeHead(came.statusCode, came.headers);
      came.pipe(answer);
    });
    onward.on("error", () => answer.writeHead(502).end());
    incoming.pipe(onward);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}${prefix}`, stop: () => { server.closeAllConnections(); server.close(); } };
}

/** A way to a TCP server that can be cut. */
export async function cuttable(port) {
  const open = new Set();
  let cut = false;
  const server = createTcpServer((incoming) => {
    if (cut) {
      incoming.destroy();
      return;
    }
    const onward = connect(port, "127.0.0.1");
    for (const socket of [incoming, onward]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => { open.delete(socket); incoming.destroy(); onward.destroy(); });
    }
    incoming.pipe(onward).pipe(incoming);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
    cut() { cut = true; for (const socket of open) { socket.destroy(); } },
    mend() { cut = false; },
    stop() { this.cut(); server.close(); },
  };
}

/** The private PostgreSQL of an `earshot dev`, by its own files. */
export function database(data) {
  const port = Number(readFileSync(join(data, "postgres/data/postmaster.pid"), "utf8").split("\n")[3]);
  const password = readFileSync(join(data, "postgres/password"), "utf8").trim();
  return { port, url: (to, name = "earshot") => `postgres://earshot:${password}@127.0.0.1:${to}/${name}` };
}

export const artefacts = process.env.CONSOLE_ARTEFACTS ?? join(root, "target/console");
mkdirSync(artefacts, { recursive: true });

export function browser() {
  // Root has no sandbox. The other flags keep Chromium from contacting other servers.
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc"];
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, args });
}
