// What the tests share: one service, one browser, the demo customer, and pages with a key in them. Each test has a
// separate browser context, so that no key or setting is left over.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before } from "node:test";
import { artefacts, browser, Earshot, until } from "./earshot.mjs";
import { closeAtEnd } from "./flaky.mjs";
import { describe, watch } from "./watch.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
export const DESK = { width: 1280, height: 860 };
export const PHONE = { width: 360, height: 740 };
/** What the browser itself says of answers that a test brings about. */
export const STATUS = (status) => new RegExp(`status of ${status}`);

export let earshot;
export let chromium;
export let demo;
/** What is to be stopped at the end. */
export const closing = [];

before(async () => {
  // Tests go faster than people; another test covers the limit. A reader without its files decides nothing, and says so.
  const settings = { EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE: "1000000", EARSHOT_SCANNER__READER__FOLDER: "/nowhere" };
  [earshot, chromium] = await Promise.all([Earshot.start(settings), browser()]);
  await describe(earshot.url);
  demo = await earshot.demo();
});

after(async () => {
  for (const close of closing.reverse()) {
    await close();
  }
  await chromium?.close();
  await earshot?.stop();
});

export const id = (name) => name.split("/").at(-1);
export const ns = () => `n/${id(demo.namespace)}`;

/** A browser context of this attempt of a test. */
export async function newContext(options) {
  const context = await chromium.newContext(options);
  context.setDefaultTimeout(Number(process.env.CONSOLE_TIMEOUT_MS ?? 120_000));
  closeAtEnd(() => context.close());
  return context;
}

/** A page with the key in it, at a route. */
export async function signedIn(route = "", { key = earshot.key, at = earshot, viewport = DESK, ...more } = {}) {
  const context = await newContext({ viewport, ...more });
  const page = await context.newPage();
  const seen = await watch(page, new URL(at.url).origin);
  await page.goto(`${at.console}#/${route}`);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.locator(".shell h1").waitFor();
  return { context, page, seen, close: () => context.close() };
}

export async function go(page, route, at = earshot) {
  await page.goto(`${at.console}#/${route}`);
  await page.locator(".shell h1").waitFor();
}

export async function settled(page) {
  await page.waitForFunction(() => !document.querySelector(".skeleton"));
  await page.waitForLoadState("networkidle");
}

/** Kept as a picture, and held to what every page is: axe finds nothing, and nothing is wider than the window. */
export async function hold(page, name, seen, { whole = true } = {}) {
  if (whole) {
    await page.evaluate(() => scrollTo(0, 0));
  }
  await page.screenshot({ path: join(artefacts, `${name}.png`), fullPage: whole });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
  assert.equal(await page.locator("h1").count(), 1, `${name} has one heading of the first level`);
  seen.check();
  await page.evaluate(axe);
  const violations = await page.evaluate(async (rules) => {
    const found = await window.axe.run(document, { runOnly: rules, resultTypes: ["violations"] });
    return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html.slice(0, 160)).join(" | ")}`);
  }, RULES);
  assert.deepEqual(violations, [], name);
}

export { until };
