// What the author of an API client came for: did my server get it, what did it answer, send it again.
import assert from "node:assert/strict";
import { closing, demo, earshot, go, hold, id, ns, settled, signedIn, STATUS, until } from "./context.mjs";
import { receiver } from "./earshot.mjs";
import { test } from "./flaky.mjs";

test("a receiver that fails: seen, tested, retried, replayed", async ({ attempt }) => {
  const name = `Our ${["shaky", "wobbly", "brittle"][attempt]} hook`;
  const named = new RegExp(name);
  const hook = await receiver();
  closing.push(() => hook.stop());
  const { page, seen, close } = await signedIn(`${ns()}/connections/new`);
  const look = (what) => hold(page, `state-${what}`, seen, { whole: false });
  hook.status = 500;
  hook.body = "<script>window.pwned=1</script> out of order";
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Address").fill(hook.url);
  await page.getByRole("button", { name: "Test it" }).click();
  await page.getByText("Not acknowledged").waitFor();
  await look("test-failed");
  hook.status = 204;
  await page.getByRole("button", { name: "Test again" }).click();
  await page.getByText("Acknowledged", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Keep it" }).click();
  await page.getByRole("heading", { name }).waitFor();
  const connection = (await earshot.call("GET", `${demo.namespace}/connections?pageSize=100`)).connections.find((one) => one.nickname === name).name;

  // The Manager sends to it too, by its settings.
  await go(page, `${ns()}/managers/${id(demo.manager)}/settings`);
  await page.getByRole("checkbox", { name: named }).check();
  const notices = page.locator("form").filter({ hasText: "Each Scan is sent to these." });
  const own = notices.getByRole("checkbox", { name: named }).locator("xpath=../..");
  const filter = own.getByLabel("Only Scans that meet this filter");
  seen.expected.push(STATUS(400));
  await filter.fill('post.colour = "red"');
  await notices.getByRole("button", { name: "Save" }).click();
  await own.locator(".hint.bad").waitFor();
  await look("notice-filter");
  await filter.fill('post.text : "OFFSITE backups"');
  await notices.getByRole("button", { name: "Save" }).click();
  await until("the notice has the filter", async () => {
    const { notices } = await earshot.call("GET", demo.manager);
    return notices.find((one) => one.connection === connection)?.filter === 'post.text : "OFFSITE backups"';
  });

  hook.status = 503;
  hook.got.length = 0;
  await earshot.publish([{ platform: "hackernews", author: "sam", title: `Ask HN: backup software for a ${["clinic", "kennel", "cannery"][attempt]}?`, text: "Looking for encrypted offsite backups of a NAS, with restores." }]);
  await until("an attempt that failed", () => hook.got.length > 0);
  await go(page, `${ns()}/connections/${id(connection)}`);
  await page.getByRole("combobox", { name: "State" }).selectOption("FAILED");
  await page.locator("tbody tr a").first().click();
  await page.getByText("503").first().waitFor();
  await page.getByText(/out of order/).first().waitFor();
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await hold(page, "state-failing-delivery", seen);
  hook.status = 200;
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByText("Acknowledged", { exact: true }).first().waitFor();

  // Counted first, then sent again.
  const before = hook.got.length;
  await page.getByRole("link", { name: `← ${name}` }).click();
  await page.getByRole("button", { name: "Replay…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("checkbox", { name: "Given up" }).uncheck();
  await dialog.getByRole("checkbox", { name: "Acknowledged" }).check();
  await dialog.getByRole("button", { name: "Count first" }).click();
  await dialog.getByText(/[1-9]\d* deliver(y|ies) would be sent again/).waitFor();
  await look("replay");
  await dialog.getByRole("button", { name: /^Send [1-9]\d* again$/ }).click();
  await page.getByText("Done", { exact: true }).waitFor();
  await look("replayed");
  await until("the deliveries again", () => hook.got.length > before);

  // Paused and enabled; secrets do not come back to the screen.
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused", { exact: true }).first().waitFor();
  await go(page, `${ns()}/overview`);
  await page.getByRole("button", { name: "Enable" }).waitFor();
  await settled(page);
  await hold(page, "state-attention", seen);
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByText(/Enabled: what waits/).first().waitFor();
  await go(page, `${ns()}/connections/${id(demo.connection)}/settings`);
  assert.equal(await page.getByLabel("Value").first().inputValue(), "");
  assert.ok(!(await page.content()).includes("larkspur-demo"));
  seen.check();

  await go(page, `${ns()}/connections/${id(connection)}/settings`);
  await page.getByRole("button", { name: "Delete this Connection" }).click();
  await page.getByLabel(/To confirm/).fill(name);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  // It is in use: the browser reports the first refusal, and the console goes on with what was confirmed.
  await page.getByRole("heading", { name: "Connections" }).waitFor();
  await close();
});

test("e-mail: a daily digest, and who has to confirm", async ({ attempt }) => {
  const name = `Our ${["morning", "noon", "evening"][attempt]} mail`;
  const { page, seen, close } = await signedIn(`${ns()}/connections/new`);
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Address").fill("mailto:ada@example.com");
  await page.getByLabel("Format").selectOption("EMAIL");
  assert.equal(await page.getByRole("button", { name: "Add a header" }).count(), 0);
  await page.getByLabel("Mails").selectOption("DAILY");
  seen.expected.push(STATUS(400));
  await page.getByLabel("Time zone").fill("Europe/Nowhere");
  await page.getByRole("button", { name: "Save without a test" }).click();
  await page.locator(".field .hint.bad").waitFor();
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await hold(page, "state-mail", seen, { whole: false });
  await page.getByRole("button", { name: "Save without a test" }).click();
  await page.getByRole("heading", { name }).waitFor();
  const { connections } = await earshot.call("GET", `${demo.namespace}/connections?pageSize=100`);
  const connection = connections.find((one) => one.nickname === name);
  assert.deepEqual(connection.digest, { period: "DAILY", timeZone: "Europe/Berlin" });
  await go(page, `${ns()}/connections/${id(connection.name)}/settings`);
  await page.getByText("has not confirmed yet").waitFor();
  assert.equal(await page.getByLabel("Mails").inputValue(), "DAILY");
  await hold(page, "state-mail-settings", seen);
  await page.getByLabel("Mails").selectOption("SINGLE");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await until("no digest", async () => (await earshot.call("GET", connection.name)).digest === undefined);
  seen.check();
  await earshot.call("DELETE", connection.name);
  await close();
});
