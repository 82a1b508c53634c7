// Webhook verification, by the public vector of Standard Webhooks.
import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyWebhook, WebhookError } from "../src/index.js";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
const BODY = '{"test": 2432232314}';
const TIME = 1614265330;
const SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const HEADERS = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": String(TIME),
  "webhook-signature": SIGNATURE,
};
const now = TIME * 1000;

test("a known signature is accepted", async () => {
  assert.deepEqual(await verifyWebhook(SECRET, HEADERS, BODY, { now }), { test: 2432232314 });
  const several = new Headers({ ...HEADERS, "Webhook-Signature": `v2,x v1,${"A".repeat(44)} ${SIGNATURE}` });
  assert(await verifyWebhook([OTHER, SECRET], several, new TextEncoder().encode(BODY), { now }));
});

test("a changed or missing header is refused", async () => {
  const changes: Record<string, string | undefined>[] = [
    { "webhook-signature": "v1," },
    { "webhook-signature": "" },
    { "webhook-signature": SIGNATURE.replace("v1,", "v2,") },
    { "webhook-signature": "v1,é" },
    { "webhook-signature": undefined },
    { "webhook-id": "msg_other" },
    { "webhook-id": undefined },
    { "webhook-timestamp": String(TIME + 1) },
    { "webhook-timestamp": "-1" },
    { "webhook-timestamp": "1e9" },
    { "webhook-timestamp": undefined },
  ];
  for (const change of changes) {
    await assert.rejects(verifyWebhook(SECRET, { ...HEADERS, ...change }, BODY, { now }), WebhookError);
  }
});

test("names of headers are compared without regard to case", async () => {
  const capitals = Object.entries(HEADERS).map(([name, value]) => [name.replace(/\b[a-z]/g, (first) => first.toUpperCase()), value]);
  assert.equal(capitals[0]![0]!.startsWith("Webhook-"), true);
  assert(await verifyWebhook(SECRET, Object.fromEntries(capitals), BODY, { now }));
  const lists = Object.entries(HEADERS).map(([name, value]) => [name, [value]]);
  assert(await verifyWebhook(SECRET, Object.fromEntries(lists), BODY, { now }));
});

test("a changed body and another secret are refused", async () => {
  for (const [secret, body] of [[SECRET, `${BODY} `], [OTHER, BODY]] as const) {
    await assert.rejects(verifyWebhook(secret, HEADERS, body, { now }), /no signature matches/);
  }
});

test("the age is bounded in both directions", async () => {
  for (const seconds of [-300, 300]) {
    assert(await verifyWebhook(SECRET, HEADERS, BODY, { now: now + seconds * 1000 }));
  }
  for (const seconds of [-301, 301]) {
    await assert.rejects(verifyWebhook(SECRET, HEADERS, BODY, { now: now + seconds * 1000 }), /more than 300 s/);
  }
  assert(await verifyWebhook(SECRET, HEADERS, BODY, { now: now + 301_000, toleranceSeconds: 400 }));
});

test("a malformed secret is a mistake of the caller", async () => {
  for (const secret of ["", "whsec_", "whsec_AAEC", SECRET.slice(6), "whsec_ä", `whsec_${"A".repeat(400)}`, []]) {
    await assert.rejects(verifyWebhook(secret, HEADERS, BODY, { now }), TypeError);
  }
});
