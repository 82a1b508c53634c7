// One Connection: how it fares, its deliveries, replays, a test, and its settings.
import { useEffect, useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Connection, TestResult } from "../api/types";
import { ApiError } from "../api/client";
import { tell } from "../parts/announce";
import { Act, Foreign, Loaded, Page, Tabs } from "../parts/basics";
import { Chart } from "../parts/chart";
import { body, ConnectionFields, draftOf } from "../parts/connection-form";
import { Deliveries } from "../parts/deliveries";
import { Confirm, Dialog, ObjectMenu } from "../parts/dialog";
import { Failed, tellError } from "../parts/errors";
import { ConnectionState, viewConnection } from "../parts/health";
import { pageOf } from "../parts/names";
import { forgetQueries, useQuery } from "../parts/query";
import { once, sum } from "../parts/spans";
import { TestAnswer } from "../parts/test-answer";
import { duration, now, percent, short, Time } from "../parts/time";
import { go, href, route } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";
import { waiting } from "./connections";
import { ReplayDialog, Replays } from "./replays";

const TABS = ["deliveries", "replays", "settings"] as const;

export function ConnectionPage({ namespace, connection, tab }: { namespace: string; connection: string; tab: string | undefined }) {
  const name = `namespaces/${namespace}/connections/${encodeURIComponent(connection)}`;
  const query = useQuery(name, (read) => api.connection(name, read));
  const dialog = useSignal<"replay" | "test" | null>(null);
  const result = useSignal<TestResult | null>(null);
  const failed = (error: unknown) => tellError(error);
  const data = query.data;
  const current = TABS.find((one) => one === tab) ?? "deliveries";

  // A link may ask for it: replays begin with one button from anywhere.
  useEffect(() => {
    if (route.value.query.get("replay") === "new" && mayWrite.value) {
      dialog.value = "replay";
    }
  }, []);

  const test = async () => {
    result.value = null;
    result.value = await api.testConnection(name);
    dialog.value = "test";
  };
  const pause = async () => {
    query.set(await api.updateConnection(name, { state: "DISABLED" }));
    tell(w.connection.pausedNow);
  };
  const enable = async () => {
    await api.enableConnection(name);
    tell(w.connection.enabled);
    query.reload();
  };
  return (
    <Page
      title={data?.nickname ?? w.connections.one} wide back={{ href: href(`n/${namespace}/connections`), text: w.connections.title }}
      lead={data && <p class="lead-states"><ConnectionState connection={data} now={now.value} /> <span class="faint">{data.method} <Foreign>{data.url}</Foreign></span></p>}
      actions={data && (
        <>
          {mayWrite.value && <Act run={test} onError={failed}>{w.connection.test}</Act>}
          {mayWrite.value && <button type="button" onClick={() => { dialog.value = "replay"; }}>{w.replay.open}</button>}
          {mayWrite.value && (data.state === "ACTIVE" ? <Act run={pause} onError={failed}>{w.connection.pause}</Act> : <Act class="primary" run={enable} onError={failed}>{w.connection.enable}</Act>)}
          <ObjectMenu name={data.name} value={data} path={data.name} />
        </>
      )}
    >
      <Loaded query={query}>
        {(found) => (
          <>
            {viewConnection(found, now.value).why && <p class="notice warn">{viewConnection(found, now.value).why}</p>}
            <Health connection={found} />
            <Tabs label={w.connections.one} current={current} tabs={TABS.map((one) => ({ id: one, text: w.connection.tabs[one], href: pageOf(name, one === "deliveries" ? "" : one) }))} />
            {current === "deliveries" && <Deliveries connection={name} />}
            {current === "replays" && <Replays connection={name} />}
            {current === "settings" && <Settings connection={found} put={query.set} />}
          </>
        )}
      </Loaded>
      {dialog.value === "replay" && <ReplayDialog connection={name} onClose={(begun) => { dialog.value = null; if (begun) { go(pageOf(name, "replays")); } }} />}
      {dialog.value === "test" && result.value && (
        <Dialog title={w.connection.test} onClose={() => { dialog.value = null; }}>
          <div class="body"><TestAnswer result={result.value} /><p class="hint">{w.test.means}</p></div>
          <footer><button type="button" class="primary" autofocus onClick={() => { dialog.value = null; }}>{w.close}</button></footer>
        </Dialog>
      )}
    </Page>
  );
}

function Health({ connection }: { connection: Connection }) {
  const stats = useQuery(`${connection.name}/stats?24h`, (read) => api.stats(connection.name, once("24h"), read));
  const health = connection.health;
  const points = stats.data?.points;
  const times = useMemo(() => (points ?? []).map((point) => point.time), [points]);
  return (
    <div class="health">
      <dl class="figures small-figures">
        <div class="figure"><dt>{w.connections.rate}</dt><dd><strong>{health?.successRate === undefined ? "–" : percent(health.successRate)}</strong><span class="delta">{w.connection.ofLast}</span></dd></div>
        <div class="figure"><dt>{w.connections.last}</dt><dd><strong><Time iso={health?.lastSuccessTime} focusable /></strong></dd></div>
        <div class="figure"><dt>{w.connections.waiting}</dt><dd><strong>{health ? waiting(health.pending) : "–"}</strong><span class="delta">{health?.oldestPendingTime ? w.connection.oldest(duration(now.value - Date.parse(health.oldestPendingTime))) : w.connection.nobodyWaits}</span></dd></div>
        <div class="figure"><dt>{w.connections.breaker}</dt><dd><strong>{health ? w.connection.breakers[health.breaker] : "–"}</strong><span class="delta">{health ? w.connection.breakerMeans[health.breaker] : ""}</span></dd></div>
      </dl>
      {stats.error !== undefined && points === undefined && <Failed error={stats.error} retry={stats.reload} />}
      {points && (
        <Chart
          title={w.connection.chart} interval={stats.data?.interval ?? "1h"} times={times} format={short}
          sentence={w.overview.saysDeliveries(sum(points, (point) => point.deliveries?.succeeded), sum(points, (point) => point.deliveries?.failedAttempts), sum(points, (point) => point.deliveries?.exhausted))}
          series={[
            { label: w.overview.acknowledged, colour: "accent", bars: true, values: points.map((point) => point.deliveries?.succeeded ?? 0) },
            { label: w.overview.failedAttempts, colour: "warn", bars: true, values: points.map((point) => point.deliveries?.failedAttempts ?? 0) },
            { label: w.overview.exhausted, colour: "bad", bars: true, values: points.map((point) => point.deliveries?.exhausted ?? 0) },
          ]}
        />
      )}
    </div>
  );
}

function Recipients({ all }: { all: NonNullable<Connection["recipients"]> }) {
  return <>{all.map((one) => <p key={one.address}><Foreign>{one.address}</Foreign> <span class="faint">{w.connection.recipientStates[one.state]}</span></p>)}</>;
}

function Settings({ connection, put }: { connection: Connection; put: (connection: Connection) => void }) {
  const draft = useSignal(draftOf(connection));
  const failed = useSignal<unknown>(undefined);
  const asking = useSignal(false);
  const namespace = connection.name.split("/")[1] ?? "";
  if (!mayWrite.value) {
    return (
      <dl class="facts card">
        <dt>{w.newConnection.url}</dt><dd><Foreign>{connection.url}</Foreign></dd>
        {connection.recipients && <><dt>{w.connection.recipients}</dt><dd><Recipients all={connection.recipients} /></dd></>}
        <dt>{w.newConnection.format}</dt><dd>{w.newConnection.formats[connection.format]}</dd>
        {connection.digest && <><dt>{w.newConnection.digest}</dt><dd>{w.newConnection.periods[connection.digest.period]} ({connection.digest.timeZone})</dd></>}
        <dt>{w.newConnection.headers}</dt><dd>{Object.keys(connection.headers).map((name) => <p key={name}><code>{name}</code>: •••</p>)}</dd>
      </dl>
    );
  }
  const save = async () => {
    failed.value = undefined;
    const saved = await api.updateConnection(connection.name, body(draft.value, connection));
    put(saved);
    draft.value = draftOf(saved);
    tell(w.saved);
  };
  // Tries without force first: the error lists the users of the Connection, and the page asks for force.
  const remove = async () => {
    try {
      await api.deleteConnection(connection.name, false);
    } catch (error) {
      if (!(error instanceof ApiError && error.has("in_use"))) {
        throw error;
      }
      await api.deleteConnection(connection.name, true);
    }
    forgetQueries();
    tell(w.deleted);
    go(href(`n/${namespace}/connections`));
  };
  return (
    <div class="settings">
      <form noValidate class="part card" onSubmit={(event) => { event.preventDefault(); }}>
        <div class="part-words">
          <h2>{w.connection.what}</h2><p class="faint">{w.connection.whatHint}</p>
          {connection.recipients && <><h3>{w.connection.recipients}</h3><Recipients all={connection.recipients} /></>}
        </div>
        <div class="part-fields">
          <ConnectionFields draft={draft} failed={failed.value} isNew={false} />
          {failed.value !== undefined && <Failed error={failed.value} />}
          <div class="actions"><Act class="primary" run={save} onError={(error) => { failed.value = error; }}>{w.save}</Act></div>
        </div>
      </form>
      <div class="card part">
        <div class="part-words"><h2>{w.delete}</h2><p class="faint">{w.connection.deleteMeans}</p></div>
        <div class="actions"><button type="button" class="danger" onClick={() => { asking.value = true; }}>{w.connection.delete}</button></div>
      </div>
      {asking.value && <Confirm title={w.connection.delete} text={<p>{w.connection.deleteMeans}</p>} word={connection.nickname} action={w.delete} danger run={remove} onClose={() => { asking.value = false; }} />}
    </div>
  );
}
