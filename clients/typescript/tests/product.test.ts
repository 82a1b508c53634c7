// The client against the running product.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError, Earshot, verifyWebhook, type Schemas } from "../src/index.js";
import type { operations } from "../src/schema.js";
import { serve, startProduct } from "./servers.js";

// Compiles only if every operation on resources has a method.
type NoMethods = "getDocs" | "getOpenapiJson" | "getOpenapiYaml" | "getScansAsAtom" | "getScansAsJsonFeed";
type Missing = Exclude<keyof operations, keyof Earshot | NoMethods>;
const nothingIsMissing: [Missing] extends [never] ? true : Missing = true;
void nothingIsMissing;

const MANUAL: Schemas["CreateManager"] = {
  nickname: "mentions",
  type: "FEED_MANAGER",
  source: { type: "FORUM" },
  instructions: { require: [["acme"]] },
};

let product: Awaited<ReturnType<typeof startProduct>>;
let client: Earshot;
let namespace: string;

before(async () => {
  product = await startProduct();
  client = new Earshot(product);
  namespace = (await client.createNamespace({ nickname: "tests" })).name;
});
after(() => product?.stop());

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) {
    found.push(item);
  }
  return found;
}

function hasStatus(status: number) {
  return (error: unknown) => error instanceof ApiError && error.status === status;
}

test("a Manager is created, updated and deleted", async () => {
  const created = await client.createManager(namespace, { ...MANUAL, maxScansPerDay: 5 });
  assert.deepEqual([created.mode, created.state], ["MANUAL", "PENDING_APPLY"]);
  const updated = await client.updateManager(created.name, { enable: false, maxScansPerDay: null });
  assert.deepEqual([updated.enable, updated.maxScansPerDay], [false, undefined]);
  const masked = await client.updateManager(created.name, { nickname: "new", enable: true }, { updateMask: "nickname" });
  assert.deepEqual([masked.nickname, masked.enable], ["new", false]);
  assert.equal((await client.applyManager(created.name)).state, "PENDING_APPLY");
  assert.deepEqual(await all(client.newScans(created.name, created.createTime)), []);
  await client.deleteManager(created.name);
  await assert.rejects(client.getManager(created.name), (error) => hasStatus(404)(error) && !!(error as ApiError).requestId);
});

test("a list reads all pages", async () => {
  const { name } = await client.createNamespace({ nickname: "pages" });
  const names: string[] = [];
  for (const nickname of ["m0", "m1", "m2", "m3", "m4"]) {
    names.push((await client.createManager(name, { ...MANUAL, nickname })).name);
  }
  const listed = await all(client.listManagers(name, { pageSize: 2, orderBy: "createTime asc", filter: 'nickname != "m0"' }));
  assert.deepEqual(listed.map((manager) => manager.name), names.slice(1));
  await client.deleteNamespace(name, { force: true });
});

test("new Scans continue after the last one", async () => {
  const [demo] = await all(client.listNamespaces({ filter: 'nickname : "demo"' }));
  assert(demo);
  const [manager] = await all(client.listManagers(demo.name));
  assert(manager);
  // The demo publishes posts all the time; its Manager may have no Scan yet.
  let times: string[] = [];
  for (let tries = 0; times.length < 2; tries += 1) {
    assert(tries < 600, "the demo has no Scans");
    times = (await all(client.newScans(manager.name))).map((scan) => scan.createTime);
    await sleep(100);
  }
  assert.deepEqual(times, [...new Set(times)].sort());
  const newer = (await all(client.newScans(manager.name, times[0]))).map((scan) => scan.createTime);
  assert.deepEqual(newer.slice(0, times.length - 1), times.slice(1));
});

test("a create with the same idempotency key makes one", async () => {
  const create = () => client.createNamespace({ nickname: "once" }, { idempotencyKey: "tests-once" });
  assert.deepEqual(await create(), await create());
});

test("test mode stores nothing", async () => {
  const trying = new Earshot({ ...product, testMode: true });
  const { name } = await trying.createNamespace({ nickname: "never" });
  await assert.rejects(trying.getNamespace(name), hasStatus(404));
});

test("a refused request names all fields", async () => {
  const refused = client.createNamespace({ nickname: "", mutes: [{ type: "TERM", value: "" }] });
  await assert.rejects(refused, (error) => {
    assert(error instanceof ApiError);
    assert.equal(error.status, 400);
    assert(error.hasIssue("nickname", "too_short") && error.hasIssue("mutes[0].value"));
    assert(!error.hasIssue("nickname", "too_long"));
    assert.match(error.message, /nickname: too_short/);
    return true;
  });
});

test("a wrong key is refused", async () => {
  await assert.rejects(new Earshot({ ...product, key: "esk_wrong" }).getCaller(), hasStatus(401));
});

test("a delivery of the product is verified", async () => {
  const signingSecrets = ["whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"];
  const receiver = await serve({ status: 204 });
  try {
    const body = { nickname: "hook", type: "HTTP_CONNECTION", url: receiver.url, signingSecrets } as const;
    const { name } = await client.createConnection(namespace, { ...body, signingSecrets });
    const result = await client.testConnection(name);
    assert(result.ok, JSON.stringify(result));
    const [delivery] = receiver.received;
    assert(delivery);
    for (const secret of signingSecrets) {
      const event = await verifyWebhook(secret, delivery.headers, delivery.body);
      assert.equal(event.type, "SCAN");
    }
  } finally {
    receiver.stop();
  }
});
