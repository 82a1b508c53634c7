// Who may do what, and with what: a key that only reads, one that is revoked, and a keyboard without a mouse.
import assert from "node:assert/strict";
import { demo, DESK, earshot, go, hold, id, newContext, ns, settled, signedIn, STATUS, until } from "./context.mjs";
import { below } from "./earshot.mjs";
import { test } from "./flaky.mjs";
import { watch } from "./watch.mjs";

test("a viewer sees no dead buttons, and is told why", async () => {
  const { page, seen, close } = await signedIn(`${ns()}/overview`, { key: earshot.makeKey("VIEWER") });
  await page.getByText("This key may read.").waitFor();
  const writing = /^(New |Mute|Label|Retry|Replay|Send test|Pause|Enable|Delete|Save|Take over|Edit$|Look back|Test|Compile)/;
  const scan = id(demo.scan);
  for (const route of ["overview", `inbox?scan=${id(demo.manager)}.${scan}`, "managers", `managers/${id(demo.manager)}/looks`, `managers/${id(demo.manager)}/feeds`, `managers/${id(demo.manager)}/settings`, "connections", `connections/${id(demo.connection)}`, `connections/${id(demo.connection)}/settings`]) {
    await go(page, `${ns()}/${route}`);
    await settled(page);
    const names = await page.locator("main :is(button, a.button, [role=switch])").evaluateAll((all) => all.map((one) => one.textContent.trim() || one.getAttribute("aria-label") || ""));
    assert.deepEqual(names.filter((name) => writing.test(name)), [], route);
    assert.equal(await page.locator("main [role=switch]").count(), 0, route);
  }
  const before = (await earshot.call("GET", demo.scan)).updateTime;
  for (const key of ["y", "n", "a", "p", "l", "m"]) {
    await page.keyboard.press(key);
  }
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal((await earshot.call("GET", demo.scan)).updateTime, before);
  seen.check();
  await close();
});

test("by keyboard alone", async () => {
  const context = await newContext({ viewport: DESK });
  const page = await context.newPage();
  const seen = await watch(page, new URL(earshot.url).origin);
  await page.goto(`${earshot.console}#/${ns()}/overview`);
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() || document.activeElement?.getAttribute("aria-label") || document.activeElement?.tagName);
  const tabTo = async (what) => {
    for (let presses = 0; presses < 60; presses += 1) {
      await page.keyboard.press("Tab");
      if (what.test(await focused())) {
        const ring = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
        assert.notEqual(ring, "none", `the focus on ${what} is seen`);
        return;
      }
    }
    assert.fail(`no way to ${what} by Tab`);
  };
  await page.keyboard.press("Tab");
  await page.keyboard.insertText(earshot.key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await tabTo(/Skip to content/);
  await tabTo(/^Managers$/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Managers" }).waitFor();
  assert.equal(await focused(), "Managers");
  await page.keyboard.press("g");
  await page.keyboard.press("i");
  await page.getByRole("heading", { name: "Inbox" }).waitFor();
  await page.locator(".row").nth(1).waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  const current = (at) => page.waitForFunction((nth) => document.querySelectorAll(".row")[nth]?.getAttribute("aria-current") === "true", at);
  await current(1);
  await page.keyboard.press("k");
  await current(0);
  await page.keyboard.press("/");
  await page.keyboard.type("jynm");
  assert.equal(await page.getByLabel("Text in title, post or author").inputValue(), "jynm");
  // Nothing matches, and that is said apart from not having looked.
  await page.getByText("Nothing matches these filters").waitFor();
  await tabTo(/Clear filters/);
  await page.keyboard.press("Enter");
  await page.locator(".row").first().waitFor();
  await tabTo(/^Help$/);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await hold(page, "state-keys", seen, { whole: false });
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.waitForFunction(() => document.activeElement?.tagName === "A" && document.activeElement.textContent === "Help");
  // Single letters can be turned off.
  await page.keyboard.press("Enter");
  await page.getByRole("checkbox", { name: "Single letters do something" }).uncheck();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  // What the keys have started is done before a later frame.
  for (let frames = 0; frames < 3; frames += 1) {
    await page.evaluate(() => new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); }));
  }
  assert.equal(await page.getByRole("heading", { name: "Help" }).count(), 1);
  seen.check();
  await context.close();
});

test("a key that is revoked ends at the field for it, and another goes on at the same page", async () => {
  const key = earshot.makeKey("EDITOR");
  const { page, seen, close } = await signedIn(`${ns()}/managers`, { key });
  seen.expected.push(STATUS(401));
  await page.getByRole("link", { name: "people who look for a backup" }).waitFor();
  earshot.keys("revoke", key);
  await until("the key's end", async () => (await fetch(`${earshot.url}/v1/caller`, { headers: { authorization: `Bearer ${key}` } })).status === 401);
  await page.getByRole("link", { name: "people who look for a backup" }).click();
  await page.getByText("The server does not take your key any more.").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  await page.getByLabel("API key").fill("esk_nonsense");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText(/A key looks like/).waitFor();
  await page.getByLabel("API key").fill(earshot.key);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { name: "people who look for a backup" }).waitFor();
  seen.check();
  await close();
});

test("below a path of somebody's proxy, in the theme that one chooses", async () => {
  const proxy = await below("/monitoring/earshot", earshot.url);
  const at = { url: proxy.url, console: `${proxy.url}/console/` };
  const { page, seen, close } = await signedIn(`${ns()}/managers`, { at, colorScheme: "light" });
  await page.getByRole("link", { name: "people who look for a backup" }).waitFor();
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.locator(".side-foot summary").click();
  await page.getByRole("button", { name: "Dark" }).click();
  assert.notEqual(await background(), light);
  await page.reload();
  await page.getByRole("link", { name: "people who look for a backup" }).waitFor();
  assert.notEqual(await background(), light, "it stays");
  seen.check();
  await close();
  proxy.stop();
});
