// Every page, wide and narrow, light and dark. They run in parallel, together with tests that mostly wait.
import assert from "node:assert/strict";
import { join } from "node:path";
import { demo, DESK, earshot, go, hold, id, newContext, ns, PHONE, settled, signedIn } from "./context.mjs";
import { artefacts } from "./earshot.mjs";
import { troubled } from "./failing.mjs";
import { describe, test } from "./flaky.mjs";
import { watch } from "./watch.mjs";

export async function everyPage() {
  demo.delivery ??= id((await earshot.call("GET", `${demo.connection}/deliveries`)).deliveries[0].name);
  const manager = `${ns()}/managers/${id(demo.manager)}`;
  const connection = `${ns()}/connections/${id(demo.connection)}`;
  return {
    overview: `${ns()}/overview`, inbox: `${ns()}/inbox`, reading: `${ns()}/inbox?scan=${id(demo.manager)}.${id(demo.scan)}`,
    "nothing-found": `${ns()}/inbox?text=zzzzzz`, managers: `${ns()}/managers`, "manager-new": `${ns()}/managers/new`,
    manager, "manager-looks": `${manager}/looks`, "manager-feeds": `${manager}/feeds`, "manager-try": `${manager}/try`, "manager-settings": `${manager}/settings`,
    connections: `${ns()}/connections`, "connection-new": `${ns()}/connections/new`, connection, delivery: `${connection}/deliveries/${demo.delivery}`,
    "connection-replays": `${connection}/replays`, "connection-settings": `${connection}/settings`, key: "key", audit: "audit", namespaces: "namespaces", help: "help", nowhere: "nowhere",
  };
}

describe("side by side", { concurrency: 2 }, () => {
  test("a server without its database, one that fails, and a key without points", troubled);
  test("what is new waits, and moves nothing", news);
  for (const viewport of [DESK, PHONE]) {
    for (const colorScheme of ["light", "dark"]) {
      test(`every page at ${viewport.width} px, ${colorScheme}: axe finds nothing, nothing overflows`, () => every(viewport, colorScheme));
    }
  }
  test("at 200 % nothing is lost", doubled);
});

/** Two pages look by themselves, every half minute. */
async function news({ attempt }) {
  const inbox = await signedIn(`${ns()}/inbox`);
  const log = await signedIn(`${ns()}/connections/${id(demo.connection)}`);
  const rows = inbox.page.locator(".row");
  const deliveries = log.page.locator("tbody tr").filter({ has: log.page.locator("a") });
  const first = async (list) => [await list.first().innerText().then((text) => text.split("\n")[0]), await list.first().boundingBox().then((box) => box.y)];
  await rows.first().waitFor();
  await deliveries.first().waitFor();
  await settled(inbox.page);
  await settled(log.page);
  const before = [await first(rows), await first(deliveries)];
  const trade = ["gardeners", "glaziers", "gunsmiths"][attempt];
  await earshot.publish([{ platform: "hackernews", author: "kim", title: `Ask HN: Which backup for a school of ${trade}?`, text: "Looking for encrypted offsite backup software for laptops and a NAS, with restores." }]);
  const shows = [inbox.page, log.page].map((page) => page.getByRole("button", { name: /\d new – show$/ }));
  await Promise.all(shows.map((show) => show.waitFor()));
  assert.deepEqual([await first(rows), await first(deliveries)], before);
  await inbox.page.screenshot({ path: join(artefacts, "state-new.png") });
  await Promise.all(shows.map((show) => show.click()));
  await inbox.page.getByRole("link", { name: new RegExp(`school of ${trade}`) }).waitFor();
  await log.page.getByRole("link", { name: new RegExp(`school of ${trade}`) }).waitFor();
  inbox.seen.check();
  log.seen.check();
  await inbox.close();
  await log.close();
}

async function every(viewport, colorScheme) {
  const signIn = await newContext({ viewport, colorScheme });
  const first = await signIn.newPage();
  const seenFirst = await watch(first, new URL(earshot.url).origin);
  await first.goto(earshot.console);
  await first.getByLabel("API key").waitFor();
  await hold(first, `sign-in-${viewport.width}-${colorScheme}`, seenFirst);
  await signIn.close();

  const { page, seen, close } = await signedIn("", { viewport, colorScheme });
  for (const [name, route] of Object.entries(await everyPage())) {
    await go(page, route);
    await settled(page);
    await hold(page, `${name}-${viewport.width}-${colorScheme}`, seen);
  }
  await close();
}

async function doubled() {
  const { page, seen, close } = await signedIn(`${ns()}/overview`, { viewport: { width: 640, height: 430 }, deviceScaleFactor: 2 });
  for (const route of Object.values(await everyPage())) {
    await go(page, route);
    await settled(page);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), route);
  }
  seen.check();
  await close();
}
