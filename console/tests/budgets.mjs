// What the console may cost, as numbers that do not depend on the machine: bytes, requests, layouts and nodes.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { demo, earshot, go, ns, settled, signedIn, until } from "./context.mjs";
import { test } from "./flaky.mjs";
import { everyPage } from "./pages.mjs";
import { faults, requests } from "./watch.mjs";

/** Requests until a page that is loaded can be used: its own files, and the answers that it shows. */
const REQUESTS = 15;
/** Layouts for each letter in the filter. One for each Scan would be a hundred. */
const LAYOUTS = 4;
/** Elements that a letter may add for each Scan that it shows. */
const ELEMENTS_PER_SCAN = 30;
/** Nodes that 100 route changes may leave behind: caches are filled by then. */
const MORE_NODES = 50;
const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;

/** What the page loads, gzipped: bytes by kind. */
async function weigh() {
  const page = await (await fetch(earshot.console)).text();
  const weighed = { js: 0, css: 0 };
  for (const [, name, kind] of page.matchAll(/(?:src|href)="([^"]+\.(js|css))"/g)) {
    const file = await fetch(new URL(name, earshot.console));
    weighed[kind] += gzipSync(Buffer.from(await file.arrayBuffer()), { level: 9 }).length;
  }
  assert.ok(weighed.js > 0 && weighed.css > 0);
  return weighed;
}

test("budgets: small, few requests, 100 Scans filtered with few layouts, nothing leaks", async ({ attempt }) => {
  const weighed = await weigh();
  const { page, seen, close } = await signedIn(`${ns()}/overview`);
  await settled(page);
  const made = [];
  page.on("request", (request) => { made.push(`${request.method()} ${new URL(request.url()).pathname}`); });
  await page.reload();
  await page.locator(".figures").waitFor();
  const needed = [...made];

  // As many Scans as the demo and its posts can give, up to a hundred on the page.
  const more = Array.from({ length: 110 }, (_, at) => ({ platform: "hackernews", author: `n${at}`, title: `Ask HN: backup software number ${at}.${attempt} for a small team?`, text: "Looking for encrypted offsite backups of a NAS, with restores that somebody tests." }));
  await earshot.publish(more);
  await until("100 Scans", async () => (await earshot.call("GET", `${demo.namespace}/managers/-/scans?pageSize=100`)).scans.length === 100);
  await go(page, "help");
  await go(page, `${ns()}/inbox`);
  await page.locator(".row").nth(10).waitFor();
  await page.getByRole("button", { name: "Load more" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".row").length >= 100);
  await settled(page);
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const layouts = async () => (await session.send("Performance.getMetrics")).metrics.find((one) => one.name === "LayoutCount").value;
  const letters = [];
  for (const text of ["n", "nu", "num", "numb", "number 1", ""]) {
    const before = await layouts();
    const { added, rows } = await page.evaluate(async (value) => {
      const field = document.querySelector("input[type=search]");
      let added = 0;
      const observer = new MutationObserver((changes) => {
        for (const node of changes.flatMap((change) => [...change.addedNodes])) {
          added += node instanceof Element ? 1 + node.querySelectorAll("*").length : 0;
        }
      });
      observer.observe(document.body, { childList: true, subtree: true });
      field.value = value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      observer.disconnect();
      return { added, rows: document.querySelectorAll(".row").length };
    }, text);
    letters.push({ text, layouts: await layouts() - before, added, rows });
  }

  const counts = async () => {
    await page.evaluate(() => window.gc());
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    return { ...await session.send("Memory.getDOMCounters"), usedSize };
  };
  const routes = Object.values(await everyPage());
  const round = async (count) => {
    for (let at = 0; at < count; at += 1) {
      await page.evaluate((route) => { location.hash = `#/${route}`; }, routes[at % routes.length]);
      await page.waitForTimeout(25);
    }
    await go(page, "help");
    await settled(page);
  };
  // What is compiled and remembered by then is no leak: recently read data is cached, up to a bound.
  await round(200);
  const first = await counts();
  await round(100);
  const last = await counts();
  await session.detach();
  console.log(`budget: ${kib(weighed.js)} of JavaScript, of 64 KiB; ${kib(weighed.css)} of CSS, of 10 KiB; gzipped, as the gateway sends them`);
  console.log(`budget: usable after ${needed.length} requests, of ${REQUESTS}: ${needed.join(", ")}`);
  console.log(`budget: 100 Scans filtered: ${letters.map((one) => `"${one.text}" ${one.layouts} layouts, ${one.added} elements for ${one.rows} rows`).join("; ")}`);
  console.log(`budget: ${last.nodes} nodes and ${last.jsEventListeners} listeners after 300 route changes, ${first.nodes} and ${first.jsEventListeners} after 200; heap ${(first.usedSize / 1e6).toFixed(2)}, then ${(last.usedSize / 1e6).toFixed(2)} MB`);
  assert.ok(weighed.js <= 64 * 1024 && weighed.css <= 10 * 1024, JSON.stringify(weighed));
  assert.ok(needed.length <= REQUESTS, needed.join(", "));
  for (const one of letters) {
    assert.ok(one.layouts <= LAYOUTS, JSON.stringify(one));
    assert.ok(one.added <= ELEMENTS_PER_SCAN * Math.max(one.rows, 1), JSON.stringify(one));
  }
  assert.ok(last.nodes - first.nodes <= MORE_NODES, JSON.stringify([first, last]));
  assert.ok(last.jsEventListeners - first.jsEventListeners <= MORE_NODES, JSON.stringify([first, last]));
  assert.equal(last.documents, first.documents);
  seen.check();
  await close();
});

test("every request that was made is one that openapi.yaml describes", () => {
  assert.ok(requests.size > 30, `${requests.size} kinds of requests were seen`);
  const wrong = [...requests].flatMap(([key, request]) => faults(request).map((fault) => `${key}: ${fault}`));
  assert.deepEqual(wrong, []);
  console.log(`requests: ${requests.size} kinds, all as openapi.yaml describes them`);
});
