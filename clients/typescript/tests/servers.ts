// Servers for the tests: the product as `earshot dev --demo`, and small ones with fixed answers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const START_MS = 120_000;
const binary = process.env.EARSHOT_BIN ?? fileURLToPath(new URL("../../../../target/debug/earshot", import.meta.url));

export async function startProduct() {
  const home = mkdtempSync(join(tmpdir(), "earshot-client-"));
  // Without these variables `earshot dev` starts a private server.
  const { DATABASE_URL: _, AMQP_URL: __, ...inherited } = process.env;
  const listen = ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0"];
  const child = spawn(binary, ["dev", "--demo", "--data-dir", join(home, "data"), ...listen], {
    env: { ...inherited, EARSHOT_LOG__FILTER: "warn", EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE: "100000" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => (log = (log + chunk.toString()).slice(-10_000)));
  const ready = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => child.kill("SIGKILL"), START_MS);
    const fail = (why: unknown) => (clearTimeout(timer), reject(new Error(`earshot is not ready: ${why}: ${log}`)));
    child.once("error", fail).once("exit", fail);
    createInterface({ input: child.stdout }).once("line", (line) => (clearTimeout(timer), resolve(line)));
  });
  const told = (name: string) => {
    const value = new RegExp(` ${name}=(\\S+)`).exec(ready)?.[1];
    assert(value, ready);
    return value;
  };
  const stop = async () => {
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await ended;
    rmSync(home, { recursive: true, force: true });
  };
  return { url: told("api"), key: told("key"), stop };
}

export interface Answer {
  status: number;
  body?: unknown;
  headers?: Record<string, string>;
}

interface Received {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Gives these answers, one after the other, and the last one from then on. */
export async function serve(...answers: Answer[]) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      received.push({ method: request.method ?? "", path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) });
      const { status, body = {}, headers } = answers[Math.min(received.length, answers.length) - 1] as Answer;
      response.writeHead(status, headers);
      response.end(status === 204 ? undefined : typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => (server.closeAllConnections(), server.close());
  return { url: `http://127.0.0.1:${port}`, received, stop };
}
