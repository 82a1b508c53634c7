// Retries and errors, against a small server. The waits are recorded, not waited for.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ApiError, Earshot, UnexpectedResponseError, UnreachableError } from "../src/index.js";
import { serve, type Answer } from "./servers.js";

const NAME = "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d";
const OK: Answer = { status: 200, body: { name: NAME } };

function busy(status: number, after: string): Answer {
  return { status, body: { code: status, message: "later" }, headers: { "retry-after": after } };
}

async function setUp(context: TestContext, answers: Answer[], retries = 4) {
  const server = await serve(...answers);
  context.after(server.stop);
  const waits: number[] = [];
  const sleep = async (ms: number) => void waits.push(ms);
  return { client: new Earshot({ url: server.url, key: "esk_test", retries, sleep }), waits, received: server.received };
}

test("a read waits as long as the service says", async (context) => {
  const { client, waits } = await setUp(context, [busy(429, "7"), busy(503, "3"), OK]);
  assert.equal((await client.getNamespace(NAME)).name, NAME);
  assert.deepEqual(waits, [7000, 3000]);
});

test("a base address may end in /v1, and a key in a line break", async (context) => {
  const server = await serve(OK, OK, OK);
  context.after(server.stop);
  for (const end of ["/", "/v1", "/v1/"]) {
    const client = new Earshot({ url: server.url + end, key: "esk_test\n" });
    assert.equal((await client.getNamespace(NAME)).name, NAME);
  }
  for (const { path, headers } of server.received) {
    assert.deepEqual([path, headers.authorization], [`/v1/${NAME}`, "Bearer esk_test"]);
  }
});

test("a read backs off without Retry-After", async (context) => {
  const { client, waits } = await setUp(context, [{ status: 503 }, busy(503, "soon"), OK]);
  await client.getNamespace(NAME);
  const [first, second] = waits;
  assert(first! >= 125 && first! <= 250 && second! >= 250 && second! <= 500, String(waits));
});

test("a create is repeated with the same idempotency key", async (context) => {
  const { client, received } = await setUp(context, [busy(503, "1"), OK]);
  await client.createNamespace({ nickname: "n" });
  const [first, second] = received.map((request) => request.headers["idempotency-key"]);
  assert(first && first === second);
});

test("an update is repeated after 429 alone", async (context) => {
  const { client, waits, received } = await setUp(context, [busy(429, "2"), busy(503, "2"), OK]);
  await assert.rejects(client.updateNamespace(NAME, { nickname: "n" }), /503 later/);
  assert.deepEqual([waits, received.length], [[2000], 2]);
});

test("the tries end", async (context) => {
  const { client, received } = await setUp(context, [busy(429, "1")], 2);
  await assert.rejects(client.getNamespace(NAME), (error) => error instanceof ApiError && error.retryAfter === 1);
  assert.equal(received.length, 3);
});

test("a hopeless request is not repeated", async (context) => {
  for (const answer of [busy(429, "3600"), { status: 500 }, { status: 404 }]) {
    const { client, received } = await setUp(context, [answer]);
    await assert.rejects(client.getNamespace(NAME), ApiError);
    assert.equal(received.length, 1);
  }
});

test("an unreachable service is tried again", async () => {
  let waits = 0;
  // Nothing listens on this port once its server has ended.
  const server = await serve(OK);
  server.stop();
  const client = new Earshot({ url: server.url, key: "esk_test", retries: 2, sleep: async () => void (waits += 1) });
  await assert.rejects(client.getNamespace(NAME), UnreachableError);
  assert.equal(waits, 2);
});

test("a redirect is not followed", async (context) => {
  const other = await setUp(context, [OK]);
  const { client } = await setUp(context, [{ status: 302, headers: { location: "http://127.0.0.1:1/" } }]);
  await assert.rejects(client.getNamespace(NAME), (error) => error instanceof ApiError && error.status === 302);
  assert.equal(other.received.length, 0);
});

test("an error page of a proxy is shown", async (context) => {
  for (const body of ["<h1>Bad gateway</h1>", "[1]", "null", '{"message": "x", "details": [null]}']) {
    const { client } = await setUp(context, [{ status: 502, body }]);
    await assert.rejects(client.getNamespace(NAME), /^ApiError: 502 /);
  }
});

test("an answer of another server is an error", async (context) => {
  const page = await setUp(context, [{ status: 200, body: "<html>" }]);
  await assert.rejects(page.client.getNamespace(NAME), UnexpectedResponseError);
  const list = await setUp(context, [{ status: 200, body: { items: [] } }]);
  await assert.rejects(list.client.listNamespaces().next(), UnexpectedResponseError);
});

test("a malformed name is refused before anything is sent", async (context) => {
  const { client, received } = await setUp(context, [OK]);
  for (const name of ["", "namespaces/../x", `${NAME}?a`, `${NAME}/managers/-`, `${NAME}\n`, "namespaces/-"]) {
    assert.throws(() => client.getNamespace(name), /a name must look like `namespaces\/…`/);
  }
  assert.equal(received.length, 0);
});

test("a malformed address is refused", () => {
  for (const url of ["", "earshot.example.com", "file:///etc/passwd", "http://a?b"]) {
    assert.throws(() => new Earshot({ url, key: "esk_test" }), /`url` must be/);
  }
});
