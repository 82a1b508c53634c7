// Failures: no network, no database, a server error, a key without points.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { earshot, id, ns, signedIn, STATUS, until } from "./context.mjs";
import { artefacts, cuttable, database, Earshot } from "./earshot.mjs";
import { test } from "./flaky.mjs";

test("offline: a banner, old data with its age, and on by itself", async () => {
  const { context, page, seen, close } = await signedIn(`${ns()}/managers`);
  seen.expected.push(/net::ERR_INTERNET_DISCONNECTED/);
  await page.getByRole("link", { name: "people who look for a backup" }).waitFor();
  await context.setOffline(true);
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByText("No connection to the server.").waitFor();
  await page.getByText(/What you see is from/).waitFor();
  await page.getByRole("link", { name: "Managers" }).first().click();
  await page.getByRole("link", { name: "people who look for a backup" }).waitFor();
  await context.setOffline(false);
  await page.getByText("No connection to the server.").waitFor({ state: "hidden" });
  await page.getByRole("link", { name: "Connections", exact: true }).click();
  await page.getByRole("link", { name: "demo receiver" }).waitFor();
  seen.check();
  await close();
});

/** Has a service of its own to break. Waits for most of its time: it runs beside others. */
export async function troubled({ attempt }) {
  const pg = database(earshot.data);
  const name = `troubled_${attempt}`;
  execFileSync("psql", [pg.url(pg.port), "-qc", `CREATE DATABASE ${name}`]);
  const way = await cuttable(pg.port);
  const troubled = await Earshot.start({ EARSHOT_DATABASE__URL: pg.url(way.port, name), EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE: "60" });
  try {
    const namespace = await until("its Namespace", async () => (await troubled.call("GET", "namespaces").catch(() => ({ namespaces: [] }))).namespaces[0]?.name);
    const printed = execFileSync("psql", [pg.url(pg.port, name), "-qAtc", "SELECT count(*) FROM api_keys"], { encoding: "utf8" });
    assert.ok(Number(printed) > 0);
    // The inbox must have something to show when the key has points again.
    const count = (table) => Number(execFileSync("psql", [pg.url(pg.port, name), "-qAtc", `SELECT count(*) FROM ${table}`], { encoding: "utf8" }));
    await until("a Scan", async () => count("scans") > 0);
    const { page, seen, close } = await signedIn(`n/${id(namespace)}/managers`, { key: troubled.key, at: troubled });
    seen.expected.push(STATUS(429), STATUS(503), STATUS(500));
    await page.getByRole("link", { name: "people who look for a backup" }).waitFor();

    way.cut();
    await page.getByRole("link", { name: "Connections", exact: true }).click();
    await page.getByText("The server cannot answer now.").waitFor();
    await page.screenshot({ path: join(artefacts, "state-503.png") });
    await page.getByText(/Request id:/).first().waitFor();
    way.mend();
    await page.getByRole("button", { name: "Try now" }).click();
    await page.getByRole("link", { name: "demo receiver" }).waitFor();
    await page.getByText("The server cannot answer now.").waitFor({ state: "hidden" });

    // A fault of the server's own, with the request's id to tell the operators of; the rest of the page lives on.
    const sql = (text) => execFileSync("psql", [pg.url(pg.port, name), "-qc", text]);
    sql("ALTER TABLE replays RENAME TO mislaid");
    await page.getByRole("link", { name: "demo receiver" }).click();
    await page.getByRole("link", { name: "Replays" }).click();
    const failed = page.getByRole("alert").filter({ hasText: "The server failed." });
    await failed.getByText(/Request id: \S+/).waitFor();
    // After the outage it may still work off what waited, so that it is Delivering, or Behind for a while.
    await page.getByText(/^(Delivering|Behind|Unsteady|Not used yet)$/).first().waitFor();
    await page.screenshot({ path: join(artefacts, "state-500.png") });
    sql("ALTER TABLE mislaid RENAME TO replays");
    await failed.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No replays").waitFor();

    for (let spent = 0; spent < 80; spent += 1) {
      const answer = await fetch(`${troubled.url}/v1/caller`, { headers: { authorization: `Bearer ${troubled.key}` } });
      if (answer.status === 429) {
        break;
      }
    }
    await page.getByRole("link", { name: "Inbox" }).click();
    await page.getByText(/This key has used up its requests for now. Going on in \d+ s/).waitFor();
    await page.screenshot({ path: join(artefacts, "state-429.png") });
    // It waits for the time of Retry-After, and goes on by itself.
    await page.locator(".row").first().waitFor();
    seen.check();
    await close();
  } finally {
    await troubled.stop();
    way.stop();
  }
}
