// A Namespace at a glance: what came, what went out, how late, and what needs attention.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Connection, Feed, Manager, Point, Stats } from "../api/types";
import { Act, Empty, Foreign, Loaded, Page, Skeleton, State, type Tone } from "../parts/basics";
import { Chart } from "../parts/chart";
import { Failed, tellError } from "../parts/errors";
import { tell } from "../parts/announce";
import { isFailing, viewConnection } from "../parts/health";
import { pageOf, useConnections, useManagers } from "../parts/names";
import { useQuery } from "../parts/query";
import { halves, isRange, measured, RANGES, sum, twice, type Range } from "../parts/spans";
import { duration, now, number, short } from "../parts/time";
import { href, route, setQuery } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

/** Feeds are asked for Manager by Manager; of many Managers, those that are in trouble tell it by their health. */
const MAX_FEED_READS = 12;
/** So many things that need somebody, the worst first; the rest on demand. */
const SHOWN = 6;

export function Overview({ namespace }: { namespace: string }) {
  const name = `namespaces/${namespace}`;
  const asked = route.value.query.get("range");
  const range: Range = isRange(asked) ? asked : "24h";
  const stats = useQuery(`${name}/stats?${range}`, (read) => api.stats(name, twice(range), read));
  const managers = useManagers(name);
  const connections = useConnections(name);

  return (
    <Page
      title={w.overview.title} wide
      actions={
        <div class="segments" role="group" aria-label={w.overview.range}>
          {RANGES.map((one) => <button type="button" key={one} aria-pressed={one === range} onClick={() => setQuery({ range: one })}>{w.overview.ranges[one]}</button>)}
        </div>
      }
    >
      {managers.data?.length === 0 && (
        <Empty title={w.overview.fresh} why={w.overview.freshWhy}>
          {mayWrite.value && <a class="button primary" href={href(`n/${namespace}/managers/new`)}>{w.managers.new}</a>}
        </Empty>
      )}
      <Loaded query={stats} rows={6}>
        {(data) => <Figures stats={data} range={range} connections={connections.data} />}
      </Loaded>
      <Attention name={name} managers={managers.data} connections={connections.data} reload={() => { managers.reload(); connections.reload(); }} />
      {managers.error !== undefined && managers.data === undefined && <Failed error={managers.error} retry={managers.reload} />}
      {connections.error !== undefined && connections.data === undefined && <Failed error={connections.error} retry={connections.reload} />}
      {stats.data && <Charts stats={stats.data} range={range} />}
    </Page>
  );
}

function Figures({ stats, range, connections }: { stats: Stats; range: Range; connections: Connection[] | undefined }) {
  const parts = halves(stats.points, range);
  const figure = (of: (point: Point) => number | undefined): [number, number] => [sum(parts.now, of), sum(parts.before, of)];
  const failing = connections?.filter((one) => isFailing(one, now.value)).length;
  return (
    <dl class="figures">
      <Figure label={w.overview.posts} values={figure((point) => point.posts)} range={range} />
      <Figure label={w.overview.scans} values={figure((point) => point.scans)} range={range} />
      <Figure label={w.overview.delivered} values={figure((point) => point.deliveries?.succeeded)} range={range} />
      <div class="figure">
        <dt>{w.overview.failing}</dt>
        <dd>
          <strong>{failing === undefined ? "–" : number(failing)}</strong>
          <span class={failing ? "delta bad" : "delta"}>{connections === undefined ? "" : w.overview.ofConnections(connections.length)}</span>
        </dd>
      </div>
    </dl>
  );
}

function Figure({ label, values: [current, before], range }: { label: string; values: [number, number]; range: Range }) {
  const change = before === 0 ? undefined : (current - before) / before;
  const words = change === undefined ? (current === 0 ? w.overview.same(range) : w.overview.noneBefore(range))
    : Math.abs(change) < 0.005 ? w.overview.same(range)
      : w.overview.change(change > 0, Math.round(Math.abs(change) * 100), range);
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd><strong title={number(current)}>{short(current)}</strong><span class="delta">{words}</span></dd>
    </div>
  );
}

function Charts({ stats, range }: { stats: Stats; range: Range }) {
  const points = useMemo(() => halves(stats.points, range).now, [stats, range]);
  const times = useMemo(() => points.map((point) => point.time), [points]);
  const { interval } = stats;
  const of = (read: (point: Point) => number | null | undefined) => points.map((point) => read(point) ?? null);
  const posts = sum(points, (point) => point.posts);
  const scans = sum(points, (point) => point.scans);
  const good = sum(points, (point) => point.deliveries?.succeeded);
  const bad = sum(points, (point) => point.deliveries?.failedAttempts);
  const lost = sum(points, (point) => point.deliveries?.exhausted);
  const worst = (read: (point: Point) => number | undefined) => Math.max(0, ...points.map((point) => read(point) ?? 0));
  return (
    <div class="charts">
      <Chart
        title={w.overview.postsAndScans} sentence={w.overview.saysPosts(posts, scans)} interval={interval} times={times} format={short}
        series={[
          { label: w.overview.posts, colour: "muted", fill: true, values: of((point) => point.posts) },
          { label: w.overview.scansRight, colour: "accent", bars: true, right: true, values: of((point) => point.scans) },
        ]}
      />
      <Chart
        title={w.overview.deliveries} sentence={w.overview.saysDeliveries(good, bad, lost)} interval={interval} times={times} format={short}
        series={[
          { label: w.overview.acknowledged, colour: "accent", bars: true, values: of((point) => point.deliveries?.succeeded) },
          { label: w.overview.failedAttempts, colour: "warn", bars: true, values: of((point) => point.deliveries?.failedAttempts) },
          { label: w.overview.exhausted, colour: "bad", bars: true, values: of((point) => point.deliveries?.exhausted) },
        ]}
      />
      <Chart
        title={w.overview.delayScan} sentence={w.overview.saysDelay(worst((point) => point.scanDelayMs?.p99), duration)} interval={interval} times={times} format={duration}
        series={[
          { label: "p50", colour: "accent", values: of((point) => measured(point.scanDelayMs?.p50)) },
          { label: "p99", colour: "muted", dash: "5 3", values: of((point) => measured(point.scanDelayMs?.p99)) },
        ]}
      />
      <Chart
        title={w.overview.delayDelivery} sentence={w.overview.saysDelay(worst((point) => point.deliveryDelayMs?.p99), duration)} interval={interval} times={times} format={duration}
        series={[
          { label: "p50", colour: "accent", values: of((point) => measured(point.deliveryDelayMs?.p50)) },
          { label: "p99", colour: "muted", dash: "5 3", values: of((point) => measured(point.deliveryDelayMs?.p99)) },
        ]}
      />
    </div>
  );
}

interface Concern {
  key: string;
  tone: Tone;
  what: string;
  href: string;
  nickname: string;
  why: ComponentChildren;
  help: ComponentChildren;
}

function Attention({ name, managers, connections, reload }: { name: string; managers: Manager[] | undefined; connections: Connection[] | undefined; reload: () => void }) {
  const watching = (managers ?? []).filter((one) => one.enable && one.state === "APPLIED").slice(0, MAX_FEED_READS);
  const feeds = useQuery(watching.length === 0 ? null : `${name}/feeds?${watching.map((one) => one.name).join()}`, async (read) => {
    const found: { manager: Manager; feed: Feed }[] = [];
    for (const manager of watching) {
      found.push(...(await api.feeds(manager.name, read)).map((feed) => ({ manager, feed })));
    }
    return found;
  });
  const all = useSignal(false);
  if (managers === undefined || connections === undefined) {
    return <section class="block"><h2>{w.attention.title}</h2><Skeleton rows={2} /></section>;
  }
  const failed = (error: unknown) => tellError(error);
  const concerns: Concern[] = [];
  for (const manager of managers) {
    const bad = manager.state === "APPLY_FAILED" || manager.health.state === "FAILING";
    if (!bad && (!manager.enable || manager.health.state === "OK")) {
      continue;
    }
    const apply = async () => { await api.applyManager(manager.name); tell(w.manager.applying); reload(); };
    concerns.push({
      key: manager.name, tone: bad ? "bad" : "warn", nickname: manager.nickname, href: pageOf(manager.name),
      what: manager.state === "APPLY_FAILED" ? w.manager.states.failed : manager.health.state === "FAILING" ? w.manager.states.blind : w.manager.healths[manager.health.state],
      why: manager.applyError?.message ?? manager.health.reasons.map((reason) => w.manager.reasons[reason] ?? reason).join(" "),
      help: manager.state === "APPLY_FAILED" && mayWrite.value
        ? <Act run={apply} onError={failed}>{w.manager.applyAgain}</Act>
        : manager.health.state === "NOISY" ? <a class="button" href={pageOf(manager.name, "looks")}>{w.attention.tune}</a>
          : <a class="button" href={pageOf(manager.name, "feeds")}>{w.attention.feeds}</a>,
    });
  }
  for (const { manager, feed } of feeds.data ?? []) {
    if (feed.state !== "OK") {
      concerns.push({
        key: `${manager.name} ${feed.feed}`, tone: feed.state === "LATE" ? "warn" : "bad", nickname: feed.feed, href: pageOf(manager.name, "feeds"),
        what: w.feed.states[feed.state] ?? feed.state, why: <>{w.attention.feedOf} <Foreign>{manager.nickname}</Foreign>. {w.feed.means[feed.state]}</>,
        help: <a class="button" href={pageOf(manager.name, "feeds")}>{w.attention.feeds}</a>,
      });
    }
  }
  for (const connection of connections) {
    if (!isFailing(connection, now.value)) {
      continue;
    }
    const view = viewConnection(connection, now.value);
    const enable = async () => { await api.enableConnection(connection.name); tell(w.connection.enabled); reload(); };
    concerns.push({
      key: connection.name, tone: view.tone === "idle" ? "bad" : view.tone, nickname: connection.nickname, href: pageOf(connection.name), what: view.word,
      why: view.why ?? w.attention.waiting(connection.health?.pending ?? 0),
      help: connection.state === "DISABLED" && mayWrite.value
        ? <Act run={enable} onError={failed}>{w.connection.enable}</Act>
        : <a class="button" href={pageOf(connection.name, "", { state: "FAILED", time: "7d" })}>{w.attention.deliveries}</a>,
    });
  }
  concerns.sort((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
  return (
    <section class="block" aria-label={w.attention.title}>
      <h2>{w.attention.title} {concerns.length > 0 && <span class="count">{concerns.length}</span>}</h2>
      {concerns.length === 0
        ? <p class="calm"><State tone="good">{w.attention.nothing}</State> <span class="faint">{w.attention.looked(managers.length, connections.length)}</span></p>
        : (
          <ul class="concerns">
            {(all.value ? concerns : concerns.slice(0, SHOWN)).map((one) => (
              <li key={one.key}>
                <State tone={one.tone}>{one.what}</State>
                <span class="concern-words"><a href={one.href}><Foreign>{one.nickname}</Foreign></a> <span class="faint">{one.why}</span></span>
                {one.help}
              </li>
            ))}
          </ul>
        )}
      {!all.value && concerns.length > SHOWN && <button type="button" class="block" onClick={() => { all.value = true; }}>{w.attention.all(concerns.length)}</button>}
    </section>
  );
}

