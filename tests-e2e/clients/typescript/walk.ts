// Runs the walk of docs/guides/rest-api.md with a client that openapi-typescript generated from the served document: from a
// key to a Scan, by polling and by webhook. Fails if the document and the service differ, even in a type.
//
//   API=http://127.0.0.1:8080 KEY=esk_… npm run walk     against `earshot dev --demo`

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Event = components["schemas"]["namespace-feed-notice-request-body"];
type Scan = components["schemas"]["Scan"];

const SECRET = "larkspur-walk";
const PATIENCE_MS = 30_000;

const api = environment("API");
const client = createClient<paths>({
  baseUrl: api,
  headers: { Authorization: `Bearer ${environment("KEY")}` },
});

function environment(name: string): string {
  const value = process.env[name];
  assert(value, `${name} is not set`);
  return value;
}

/** Returns the ids in a name, which are the path parameters. */
function ids(name: string): string[] {
  return name.split("/").filter((_, position) => position % 2 === 1);
}

function first<T>(items: T[]): T {
  const item = items[0];
  assert(item !== undefined, "an empty list");
  return item;
}

/** Returns the answer of a call; an error ends the run with all details. */
function data<T>(answer: { data?: T; error?: unknown; response: Response }): T {
  assert(answer.response.headers.get("x-request-id"), "an answer without x-request-id");
  assert(answer.data !== undefined, `${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

async function eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const end = Date.now() + PATIENCE_MS;
  while (Date.now() < end) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    await sleep(100);
  }
  throw new Error(`${what}: not within ${PATIENCE_MS} ms`);
}

const events: { event: Event; headers: IncomingHttpHeaders; method: string | undefined }[] = [];
const receiver = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => (body += chunk.toString()));
  request.on("end", () => {
    events.push({ event: JSON.parse(body) as Event, headers: request.headers, method: request.method });
    response.writeHead(204).end();
  });
});
await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/scans`;

// The demo's page, and its simulated platforms.
const demo = first(data(await client.GET("/v1/namespaces", {
  params: { query: { filter: 'nickname : "demo"', orderBy: "createTime asc" } },
})).namespaces);
const [demoId] = ids(demo.name);
assert(demoId);
const demoManagers = data(await client.GET("/v1/namespaces/{namespaceId}/managers", {
  params: { path: { namespaceId: demoId } },
})).managers;
const page = first(demoManagers.flatMap((manager) => manager.input?.urls ?? []));

const namespace = data(await client.POST("/v1/namespaces", { body: { nickname: "Larkspur" } }));
const [namespaceId] = ids(namespace.name);
assert(namespaceId);
const connection = data(await client.POST("/v1/namespaces/{namespaceId}/connections", {
  params: { path: { namespaceId } },
  body: {
    nickname: "our server",
    type: "HTTP_CONNECTION",
    url: hook,
    method: "POST",
    headers: { "x-demo-secret": SECRET },
  },
}));
const created = data(await client.POST("/v1/namespaces/{namespaceId}/managers", {
  params: { path: { namespaceId } },
  body: {
    nickname: "who looks for a backup?",
    type: "FEED_MANAGER",
    enable: true,
    source: { type: "FORUM" },
    input: { type: "STRUCTURED", urls: [page], focus: { type: "SALES" } },
    notices: [{ type: "HTTP_REQUEST", connection: connection.name }],
  },
}));
assert.equal(created.mode, "AUTOMATIC");
assert.equal(created.state, "PENDING_APPLY");
const [, managerId] = ids(created.name);
assert(managerId);
const path = { namespaceId, managerId };

const applied = await eventually("the Manager is APPLIED", async () => {
  const manager = data(await client.GET("/v1/namespaces/{namespaceId}/managers/{managerId}", { params: { path } }));
  assert.notEqual(manager.state, "APPLY_FAILED", JSON.stringify(manager.applyError));
  return manager.state === "APPLIED" ? manager : undefined;
});
assert(applied.instructions?.brief, "instructions with a brief");

const title = "Ask HN: Which backup software for a small team?";
const published = await fetch(new URL("../control/posts", page), {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify([{
    platform: "hackernews",
    author: "pat",
    title,
    text: "Eight laptops and a NAS. Looking for encrypted offsite backups, with restores that somebody tests.",
  }]),
});
assert(published.ok, `the simulator: ${published.status}`);

// Polling loses nothing: it continues from the last createTime, oldest first.
let since = "2026-01-01T00:00:00Z";
const seen: Scan[] = [];
const scan = await eventually("the Scan is listed", async () => {
  const answer = data(await client.GET("/v1/namespaces/{namespaceId}/managers/{managerId}/scans", {
    params: { path, query: { pageSize: 100, filter: `createTime > "${since}"`, orderBy: "createTime asc" } },
  }));
  seen.push(...answer.scans);
  since = answer.scans.at(-1)?.createTime ?? since;
  return seen.find((scan) => scan.post.title === title);
});
assert.equal(scan.value, true);
assert.equal(scan.post.type, "FORUM_LINK");
assert.equal(new Set(seen.map((scan) => scan.name)).size, seen.length, "a Scan was listed twice");

const { event, headers, method } = await eventually("the webhook", async () =>
  events.find(({ event }) => event.name === scan.name));
assert.equal(method, "POST");
assert.equal(headers["x-demo-secret"], SECRET);
assert.deepEqual(event, { type: "SCAN", name: scan.name, post: scan.post });

// Errors have a type too.
const refused = await client.POST("/v1/namespaces", { body: { nickname: "" } });
assert.equal(refused.error?.code, 400);
assert.deepEqual(refused.error.details, [{ field: "nickname", issue: "too_short" }]);

receiver.close();
receiver.closeAllConnections();
console.log(`walked: ${seen.length} Scans listed, ${events.length} received`);
