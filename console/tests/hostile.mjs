// Posts that try to be more than text.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { demo, DESK, earshot, go, id, ns, PHONE, signedIn, until } from "./context.mjs";
import { artefacts, root } from "./earshot.mjs";
import { test } from "./flaky.mjs";

test("hostile posts stay text", async () => {
  const posts = JSON.parse(readFileSync(join(root, "console/tests/hostile.json"), "utf8"))
    .map(({ repeat, length, ...post }) => (repeat ? { ...post, text: repeat.repeat(Math.ceil(length / repeat.length)).slice(0, length) } : post));
  await earshot.publish(posts);
  const found = await until("the hostile Scans", async () => {
    const { scans } = await earshot.call("GET", `${demo.namespace}/managers/-/scans?pageSize=100`);
    const hostile = scans.filter((scan) => posts.some((post) => scan.post.user.name === post.author || scan.post.title === post.title));
    return hostile.length >= posts.length && hostile;
  }).catch(async (error) => {
    const { scans } = await earshot.call("GET", `${demo.namespace}/managers/-/scans?pageSize=100`);
    throw new Error(`${error.message}; authors: ${scans.map((scan) => scan.post.user.name).join(", ")}`);
  });
  for (const viewport of [DESK, PHONE]) {
    const { page, seen, close } = await signedIn(`${ns()}/inbox`, { viewport });
    for (const scan of found) {
      await go(page, `${ns()}/inbox?scan=${id(scan.name.split("/scans/")[0])}.${id(scan.name)}`);
      const pane = page.getByRole("region", { name: "Reading" });
      await pane.locator(".post-title").waitFor();
      assert.equal((await pane.locator(".post-title").innerText()).normalize(), scan.post.title.replaceAll(/\s+/g, " ").normalize(), "the title, whole, as text");
      assert.equal(await page.locator("main script, main img, main a[href^='javascript']").count(), 0);
      assert.equal(await page.evaluate(() => window.pwned), undefined);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${scan.post.user.name} makes the page ${wide} px too wide at ${viewport.width}`);
      for (const link of await pane.locator("a[target=_blank]").evaluateAll((all) => all.map((one) => [one.protocol, one.rel]))) {
        assert.match(link[0], /^https?:$/);
        assert.equal(link[1], "noopener noreferrer");
      }
    }
    await page.screenshot({ path: join(artefacts, `hostile-${viewport.width}.png`) });
    if (viewport === DESK) {
      await go(page, `${ns()}/inbox?text=HYPERLINK`);
      await page.locator(".row").first().waitFor();
      const download = page.waitForEvent("download");
      await page.getByText("Export ▾").click();
      await page.getByRole("button", { name: "CSV" }).click();
      const row = readFileSync(await (await download).path(), "utf8").split("\r\n")[1];
      assert.match(row, /'=cmd/);
      assert.match(row, /"'=HYPERLINK/);
      assert.doesNotMatch(row, /(^|,)"?[=+\-@]/);
    }
    seen.check();
    await close();
  }
});
