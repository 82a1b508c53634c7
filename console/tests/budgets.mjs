// What the console may cost, measured and printed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { demo, earshot, go, ns, settled, signedIn, until } from "./context.mjs";
import { everyPage } from "./pages.mjs";
import { faults, requests } from "./watch.mjs";

// The budgets are for a machine that does nothing else. Next to other tests, only gross excess counts.
const SLACK = process.env.EARSHOT_LARGE_TESTS === "1" ? 1 : 10;
const USABLE_MS = 1_000 * SLACK;
const FILTERED_MS = 50 * SLACK;
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

test("budgets: small, soon usable, 100 Scans soon filtered, nothing leaks", async () => {
  const weighed = await weigh();
  const { page, seen, close } = await signedIn(`${ns()}/overview`);
  await settled(page);
  const loads = [];
  // What neighbours on the machine cost is not the console's: one load within the budget shows that it can be met.
  while (loads.length < 5 && !loads.some((load) => load <= USABLE_MS)) {
    const began = Date.now();
    await page.reload();
    await page.locator(".figures").waitFor();
    loads.push(Date.now() - began);
  }
  const usable = Math.min(...loads);

  // As many Scans as the demo and its posts can give, up to a hundred on the page.
  const more = Array.from({ length: 110 }, (_, at) => ({ platform: "hackernews", author: `n${at}`, title: `Ask HN: backup software number ${at} for a small team?`, text: "Looking for encrypted offsite backups of a NAS, with restores that somebody tests." }));
  await earshot.publish(more);
  await until("100 Scans", async () => (await earshot.call("GET", `${demo.namespace}/managers/-/scans?pageSize=100`)).scans.length === 100, 60_000);
  const filter = async () => {
    await go(page, "help");
    await go(page, `${ns()}/inbox`);
    await page.locator(".row").nth(10).waitFor();
    await page.getByRole("button", { name: "Load more" }).click();
    await page.waitForFunction(() => document.querySelectorAll(".row").length >= 100);
    return page.evaluate(async () => {
      const field = document.querySelector("input[type=search]");
      const times = [];
      for (const text of ["n", "nu", "num", "numb", "number 1"]) {
        const from = performance.now();
        field.value = text;
        field.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        times.push(performance.now() - from);
      }
      return times.sort((a, b) => a - b)[2];
    });
  };
  let filtered = await filter();
  for (let tries = 1; tries < 3 && filtered > FILTERED_MS; tries += 1) {
    filtered = Math.min(filtered, await filter());
  }

  const heap = async () => {
    await page.evaluate(() => window.gc());
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    await session.detach();
    return usedSize;
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
  const first = await heap();
  await round(100);
  const last = await heap();
  const growth = last / first - 1;
  console.log(`budget: ${kib(weighed.js)} of JavaScript, of 60 KiB; ${kib(weighed.css)} of CSS, of 10 KiB; gzipped, as the gateway sends them`);
  console.log(`budget: usable ${usable} ms after navigation, of 1,000 (tried: ${loads.join(", ")})`);
  console.log(`budget: 100 Scans filtered in ${filtered.toFixed(1)} ms, of 50 (median of 5)`);
  console.log(`budget: heap ${(last / 1e6).toFixed(2)} MB after 300 route changes, ${(growth * 100).toFixed(1)} % more than after 200, of 10 %`);
  assert.ok(weighed.js <= 60 * 1024 && weighed.css <= 10 * 1024, JSON.stringify(weighed));
  assert.ok(usable <= USABLE_MS, `usable after ${usable} ms`);
  assert.ok(filtered <= FILTERED_MS, `filtered in ${filtered} ms`);
  assert.ok(growth <= 0.1, `the heap grew by ${growth}`);
  seen.check();
  await close();
});

test("every request that was made is one that openapi.yaml describes", () => {
  assert.ok(requests.size > 30, `${requests.size} kinds of requests were seen`);
  const wrong = [...requests].flatMap(([key, request]) => faults(request).map((fault) => `${key}: ${fault}`));
  assert.deepEqual(wrong, []);
  console.log(`requests: ${requests.size} kinds, all as openapi.yaml describes them`);
});
