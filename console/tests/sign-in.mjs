// Sign-in by a provider: the package oidc-provider, which has its own site and pages. A proxy in
// front of the gateway changes what the two say to each other through the browser.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { createServer, request } from "node:http";
import { json } from "node:stream/consumers";
import Provider from "oidc-provider";
import { closing, DESK, hold, newContext, STATUS, until } from "./context.mjs";
import { Earshot } from "./earshot.mjs";
import { test } from "./flaky.mjs";
import { watch } from "./watch.mjs";

const PREFIX = "/earshot";
const PEOPLE = { jane: ["everyone", "staff"], joe: ["everyone"] };
let started;

async function listen(server, host) {
  await new Promise((resolve) => server.listen(0, host, resolve));
  closing.push(() => { server.closeAllConnections(); server.close(); });
  return server.address().port;
}

/**
 * A proxy below a path. `go` changes where the gateway sends the browser, `back` with what the browser comes back. `ends`
 * are answers to the next requests to sign out: a status, or 0 for none at all. `callers` are those to the next requests
 * for what the key may do.
 */
async function front() {
  const state = { api: undefined, go: (url) => url, back: async (url) => url, ends: [], callers: [] };
  const server = createServer(async (incoming, answer) => {
    let url = new URL(incoming.url.slice(PREFIX.length), state.api);
    if (url.pathname.endsWith("/callback")) {
      url = await state.back(url);
    }
    const planned = url.pathname.endsWith("/sign-in/end") ? state.ends : url.pathname.endsWith("/v1/caller") ? state.callers : [];
    if (planned.length > 0) {
      const status = planned.shift();
      if (status === 0) {
        incoming.destroy();
      } else {
        answer.writeHead(status, { "content-type": "application/json" }).end("{}");
      }
      return;
    }
    const onward = request(url, { method: incoming.method, headers: incoming.headers }, (came) => {
      const { location } = came.headers;
      const moved = location?.startsWith("http") ? { location: state.go(new URL(location)).href } : {};
      answer.writeHead(came.statusCode, { ...came.headers, ...moved });
      came.pipe(answer);
    });
    onward.on("error", () => answer.writeHead(502).end());
    incoming.pipe(onward);
  });
  state.url = `http://127.0.0.1:${await listen(server, "127.0.0.1")}${PREFIX}`;
  return state;
}

/** An ID token with other claims, signed by the same key. */
function changed(token, claims, key) {
  const [header, payload] = token.split(".");
  const all = { ...JSON.parse(Buffer.from(payload, "base64url")), ...claims };
  const message = `${header}.${Buffer.from(JSON.stringify(all)).toString("base64url")}`;
  return `${message}.${sign("sha256", Buffer.from(message), key).toString("base64url")}`;
}

/** The provider, and a gateway whose people sign in there. `tokens.claims` replace those of ID tokens. */
async function start() {
  const proxy = await front();
  const tokens = { claims: undefined };
  const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const server = createServer();
  // Another site than that of the gateway.
  const issuer = `http://localhost:${await listen(server, "localhost")}`;
  const client = { redirect_uris: [`${proxy.url}/console/sign-in/callback`] };
  const provider = new Provider(issuer, {
    clients: [{ ...client, client_id: "earshot", client_secret: "hush" }, { ...client, client_id: "another", client_secret: "hush" }],
    claims: { openid: ["sub", "groups"], email: ["email", "email_verified"], profile: [] },
    conformIdTokenClaims: false,
    cookies: { keys: ["a key of the test"] },
    jwks: { keys: [{ ...key.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: "test" }] },
    features: { devInteractions: { enabled: true } },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, groups: PEOPLE[id] ?? [] }) }),
  });
  const behind = await listen(createServer(provider.callback()), "localhost");
  server.on("request", (incoming, answer) => {
    const onward = request(new URL(incoming.url, `http://localhost:${behind}`), { method: incoming.method, headers: incoming.headers }, async (came) => {
      if (incoming.url !== "/token" || tokens.claims === undefined) {
        answer.writeHead(came.statusCode, came.headers);
        came.pipe(answer);
        return;
      }
      const body = await json(came);
      const replaced = { ...body, id_token: changed(body.id_token, tokens.claims, key) };
      answer.writeHead(came.statusCode, { "content-type": "application/json" }).end(JSON.stringify(replaced));
    });
    onward.on("error", () => answer.writeHead(502).end());
    incoming.pipe(onward);
  });
  const earshot = await Earshot.start({
    EARSHOT_GATEWAY__OIDC__ISSUER: issuer, EARSHOT_GATEWAY__OIDC__CLIENT_ID: "earshot", EARSHOT_GATEWAY__OIDC__CLIENT_SECRET: "hush",
    EARSHOT_GATEWAY__OIDC__CONSOLE_URL: `${proxy.url}/console/`, EARSHOT_GATEWAY__OIDC__NAME: "Acme", EARSHOT_GATEWAY__OIDC__GRANTS: "staff=dev:EDITOR",
  });
  closing.push(() => earshot.stop());
  proxy.api = earshot.url;
  return { earshot, issuer, provider, proxy, tokens, console: `${proxy.url}/console/` };
}

/** A new browser at a page of the console. */
async function visit(at, route) {
  const context = await newContext({ viewport: DESK });
  const page = await context.newPage();
  const seen = await watch(page, new URL(at.console).origin);
  await page.goto(`${at.console}#/${route}`);
  return { context, page, seen };
}

/** Goes to the provider, signs in there, and agrees. */
async function signIn({ page, seen }, at, login) {
  await page.getByRole("link", { name: "Sign in with Acme" }).click();
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  await page.locator("input[name=prompt][value=consent]").waitFor({ state: "attached" });
  await page.locator("button[type=submit]").click();
  await page.waitForURL((url) => url.href.startsWith(at.console));
  // What the pages of the provider do is not ours.
  seen.foreign.length = 0;
  seen.errors.length = 0;
  seen.violations.length = 0;
}

test("somebody signs in at the provider, comes back to the same page, and signs out", async () => {
  started ??= await start();
  const at = started;
  const browser = await visit(at, "key");
  const { context, page, seen } = browser;
  await page.getByRole("link", { name: "Sign in with Acme" }).waitFor();
  await hold(page, "sign-in-provider", seen);
  await signIn(browser, at, "jane");
  await page.getByRole("heading", { name: "This key" }).waitFor();
  await page.getByText("jane@example.com").waitFor();
  await page.getByText("Editor").first().waitFor();
  await hold(page, "sign-in-person", seen);

  // The token is in sessionStorage alone, and the cookie of the sign-in is gone.
  const stored = await page.evaluate(() => Object.values({ ...sessionStorage }));
  assert.equal(stored.length, 1);
  const [token] = stored;
  assert.match(token, /^esk_/);
  assert.ok(!page.url().includes("esk_"));
  const cookies = await context.cookies(at.console);
  assert.deepEqual(cookies.filter((one) => one.name.includes("earshot")), []);
  const me = await at.earshot.call("GET", "caller", undefined, token);
  assert.deepEqual([me.account, me.role, me.person], ["dev", "EDITOR", "jane@example.com"]);

  await page.reload();
  await page.getByRole("heading", { name: "This key" }).waitFor();
  // Failures that pass do not keep the session.
  at.proxy.ends = [503, 0, 429];
  seen.expected.push(STATUS(503), STATUS(429), /net::ERR_/);
  await page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are signed out").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  const status = async () => (await fetch(`${at.earshot.url}/v1/caller`, { headers: { authorization: `Bearer ${token}` } })).status;
  await until("the end of the session", async () => (await status()) === 401);
  seen.check();
});

test("the console says whether a session was ended", async () => {
  started ??= await start();
  const at = started;
  // 401: it has ended before. The last refusal of four is final.
  for (const { ends, says, left } of [
    { ends: [401], says: "the key is forgotten", left: 0 },
    { ends: [503, 503, 503, 503, 503], says: "could not be reached", left: 1 },
  ]) {
    const browser = await visit(at, "key");
    await signIn(browser, at, "jane");
    await browser.page.getByRole("heading", { name: "This key" }).waitFor();
    at.proxy.ends = ends;
    const last = browser.page.waitForResponse((answer) => answer.url().endsWith("/sign-in/end") && at.proxy.ends.length === left);
    await browser.page.getByRole("main").getByRole("button", { name: "Sign out" }).click();
    await (await last).finished();
    // A page that says something else by now would do so at once.
    await browser.page.evaluate(() => new Promise((done) => setTimeout(done, 100)));
    await browser.page.getByText(says).waitFor();
    at.proxy.ends = [];
    await browser.context.close();
  }
});

test("a session is kept if the first request with it fails", async () => {
  started ??= await start();
  const at = started;
  const browser = await visit(at, "key");
  at.proxy.callers = [403];
  await signIn(browser, at, "jane");
  await browser.page.getByRole("button", { name: "Try again" }).click();
  await browser.page.getByRole("heading", { name: "This key" }).waitFor();
  await browser.context.close();
});

test("after a sign-in that failed, the next one leads to the same page", async () => {
  started ??= await start();
  const at = started;
  const browser = await visit(at, "key");
  at.proxy.go = (url) => new URL(`${at.proxy.url}/console/sign-in/callback?error=access_denied&state=${url.searchParams.get("state")}`);
  await browser.page.getByRole("link", { name: "Sign in with Acme" }).click();
  await browser.page.getByRole("alert").waitFor();
  at.proxy.go = (url) => url;
  await signIn(browser, at, "jane");
  await browser.page.getByRole("heading", { name: "This key" }).waitFor();
  await browser.context.close();
});

test("a sign-in that goes wrong is explained, and leads to no session", async () => {
  started ??= await start();
  const at = started;
  const replace = (name, value) => (url) => { url.searchParams.set(name, value); return url; };
  /** What the code's owner could not do: it is as if it had expired. */
  const forgotten = async (url) => {
    await (await at.provider.AuthorizationCode.find(url.searchParams.get("code"))).destroy();
    return url;
  };
  const other = async (url) => {
    // Another browser is faster with the same address, and may not.
    const answer = await fetch(url, { redirect: "manual" });
    assert.match(answer.headers.get("location"), /failed=expired$/);
    return url;
  };
  const cases = [
    { person: "joe", says: /none of your groups may use Earshot/ },
    { claims: { aud: "another" }, says: /answer cannot be used/, logs: "the ID token is not valid: InvalidAudience" },
    { claims: { iss: "https://id.example.com" }, says: /answer cannot be used/, logs: "the ID token is not valid: InvalidIssuer" },
    { go: replace("nonce", "another"), says: /answer cannot be used/ },
    { go: replace("client_id", "another"), says: /answer cannot be used/ },
    { go: replace("state", "another"), says: /began in another browser/ },
    { go: replace("code_challenge", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"), says: /answer cannot be used/ },
    { back: async (url) => replace("iss", "https://id.example.com")(url), says: /answer cannot be used/ },
    { back: async (url) => replace("code", "another")(url), says: /answer cannot be used/ },
    { back: forgotten, says: /answer cannot be used/ },
  ];
  for (const { person = "jane", go = (url) => url, back = async (url) => url, claims, says, logs = "" } of cases) {
    Object.assign(at.proxy, { go, back });
    at.tokens.claims = claims;
    const browser = await visit(at, "");
    await signIn(browser, at, person);
    await browser.page.getByRole("alert").filter({ hasText: says }).waitFor();
    assert.equal(await browser.page.evaluate(() => Object.values({ ...sessionStorage }).some((one) => one.startsWith("esk_"))), false, String(says));
    // Only some reasons are warnings.
    await until(`in the log: ${logs}`, async () => at.earshot.log.join("").includes(logs));
    await hold(browser.page, `sign-in-failed-${cases.findIndex((one) => one.says === says)}`, browser.seen);
    await browser.context.close();
  }

  Object.assign(at.proxy, { go: (url) => url, back: other });
  const browser = await visit(at, "");
  let came;
  browser.page.on("request", (made) => { came = made.url().includes("/callback?") ? made.url() : came; });
  await signIn(browser, at, "jane");
  await browser.page.locator(".shell h1").waitFor();
  at.proxy.back = async (url) => url;
  // The same address a second time, in a tab without the token.
  await browser.page.evaluate(() => sessionStorage.clear());
  await browser.page.goto(came);
  await browser.page.getByRole("alert").filter({ hasText: "was used before" }).waitFor();
  browser.seen.check();
});

test("a provider that is away is explained, and nothing is tried again by itself", async () => {
  const proxy = await front();
  const gone = createServer();
  const port = await listen(gone, "localhost");
  gone.close();
  const earshot = await Earshot.start({
    EARSHOT_GATEWAY__OIDC__ISSUER: `http://localhost:${port}`, EARSHOT_GATEWAY__OIDC__CLIENT_ID: "earshot",
    EARSHOT_GATEWAY__OIDC__CONSOLE_URL: `${proxy.url}/console/`, EARSHOT_GATEWAY__OIDC__GRANTS: "staff=dev:EDITOR",
  });
  closing.push(() => earshot.stop());
  proxy.api = earshot.url;
  const { page, seen } = await visit({ console: `${proxy.url}/console/` }, "");
  const begun = [];
  page.on("request", (made) => { if (made.url().endsWith("/begin")) { begun.push(made.url()); } });
  await page.getByRole("link", { name: "Sign in with OpenID Connect" }).click();
  await page.getByText("Signing in does not work now.").waitFor();
  await hold(page, "sign-in-away", seen);
  assert.equal(begun.length, 1);
  // The key opens the console all the same.
  await page.getByLabel("API key").fill(earshot.key);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator(".shell h1").waitFor();
  seen.check();
});
