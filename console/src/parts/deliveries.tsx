// The delivery log of a Connection, with what one looks for in it.
import { useEffect, useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { DELIVERY_STATES, id, parent, type Delivery } from "../api/types";
import { route, setQuery } from "../router";
import { w } from "../words/en";
import { Empty, Foreign, Skeleton } from "./basics";
import { Failed } from "./errors";
import { quoted, TIMES } from "./filter";
import { DeliveryMark } from "./health";
import { headline } from "./marked";
import { pageOf, useManagers } from "./names";
import { REFRESH_MS, useQuery } from "./query";
import { Time } from "./time";

/** More than one state in one word, for links from elsewhere. */
const FAILED = "FAILED";
const PAGE_SIZE = 50;
const STATUSES = ["2xx", "3xx", "4xx", "5xx", "none"];

function toFilter(query: URLSearchParams): string {
  const parts: string[] = [];
  const state = query.get("state") ?? "";
  if (state === FAILED) {
    parts.push("(state = RETRYING OR state = EXHAUSTED)");
  } else if (DELIVERY_STATES.some((one) => one === state)) {
    parts.push(`state = ${state}`);
  }
  const span = TIMES[query.get("time") ?? ""];
  if (span !== undefined) {
    parts.push(`createTime > ${quoted(new Date(Math.floor((Date.now() - span) / 60_000) * 60_000).toISOString())}`);
  }
  const status = query.get("status") ?? "";
  if (/^[2-5]xx$/.test(status)) {
    const from = Number(status[0]) * 100;
    parts.push(`lastStatusCode >= ${from} AND lastStatusCode < ${from + 100}`);
  } else if (status === "none") {
    parts.push('lastError != ""');
  }
  return parts.join(" AND ");
}

export function Deliveries({ connection }: { connection: string }) {
  const query = route.value.query;
  const key = ["state", "time", "status"].map((one) => query.get(one) ?? "").join(" ");
  const list = useSignal<Delivery[] | null>(null);
  const waiting = useSignal<Delivery[]>([]);
  const next = useSignal<string | undefined>(undefined);
  const failed = useSignal<unknown>(undefined);
  const round = useSignal(0);
  const busy = useSignal(false);
  const filter = toFilter(query);
  const managers = useManagers(parent(connection));
  const nickname = (scan: string) => managers.data?.find((one) => one.name === parent(scan))?.nickname;
  const subject = ({ scan, event }: Delivery) => (event ? w.delivery.events[event.type] : titles.get(scan ?? "") ?? id(scan ?? ""));
  // The log names Scans. Titles of recent Scans are loaded already.
  const all = `${parent(connection)}/managers/-`;
  const scans = useQuery(`${all}/titles`, (read) => api.scans(all, {}, read));
  const titles = useMemo(() => new Map((scans.data?.items ?? []).map((scan) => [scan.name, headline(scan.post)])), [scans.data]);

  useEffect(() => {
    const stop = new AbortController();
    const load = async (background: boolean) => {
      try {
        const page = await api.deliveries(connection, { filter, pageSize: PAGE_SIZE }, { signal: stop.signal, background });
        failed.value = undefined;
        if (!background || list.value === null) {
          list.value = page.items;
          next.value = page.next;
          waiting.value = [];
          return;
        }
        // Rows stay where they are, their states become the present ones; new rows wait until the user asks for them.
        const fresh = new Map(page.items.map((one) => [one.name, one]));
        list.value = list.value.map((one) => fresh.get(one.name) ?? one);
        const known = new Set(list.value.map((one) => one.name));
        waiting.value = page.items.filter((one) => !known.has(one.name) && one.createTime > (list.value?.[0]?.createTime ?? ""));
      } catch (error) {
        if (!stop.signal.aborted && !background) {
          failed.value = error;
        }
      }
    };
    void load(false);
    const timer = setInterval(() => { if (!document.hidden) { void load(true); } }, REFRESH_MS);
    return () => { stop.abort(); clearInterval(timer); };
  }, [connection, key, round.value]);

  const showWaiting = () => {
    if (waiting.value.length >= PAGE_SIZE) {
      round.value += 1; // There may be more between.
    } else {
      list.value = [...waiting.value, ...(list.value ?? [])];
      waiting.value = [];
    }
  };
  const more = async () => {
    busy.value = true;
    try {
      const page = await api.deliveries(connection, { filter, pageSize: PAGE_SIZE, pageToken: next.value }, {});
      list.value = [...(list.value ?? []), ...page.items.filter((one) => !(list.value ?? []).some((old) => old.name === one.name))];
      next.value = page.next;
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  const choice = (name: string, label: string, options: [string, string][]) => (
    <select aria-label={label} class={query.get(name) ? "chosen" : ""} value={query.get(name) ?? ""} onChange={(event) => setQuery({ [name]: event.currentTarget.value || undefined })}>
      <option value="">{label}</option>
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
  return (
    <>
      <form noValidate class="filters" role="search" aria-label={w.delivery.filters} onSubmit={(event) => event.preventDefault()}>
        {choice("state", w.delivery.state, [[FAILED, w.delivery.anyFailed], ...DELIVERY_STATES.map((one): [string, string] => [one, w.delivery.states[one]])])}
        {choice("time", w.inbox.time, Object.keys(TIMES).map((one): [string, string] => [one, w.overview.ranges[one as "1h"]]))}
        {choice("status", w.delivery.status, STATUSES.map((one): [string, string] => [one, one === "none" ? w.delivery.noAnswer : one]))}
        {filter !== "" && <button type="button" onClick={() => setQuery({ state: undefined, time: undefined, status: undefined })}>{w.inbox.clear}</button>}
        {waiting.value.length > 0 && <button type="button" class="fresh" onClick={showWaiting}>{w.delivery.fresh(waiting.value.length, PAGE_SIZE)}</button>}
      </form>
      {failed.value !== undefined && <Failed error={failed.value} retry={() => { round.value += 1; }} />}
      {list.value === null && failed.value === undefined && <Skeleton rows={6} />}
      {list.value?.length === 0 && <Empty title={filter === "" ? w.delivery.none : w.delivery.noneSuch} why={filter === "" ? w.delivery.noneWhy : undefined} />}
      {list.value !== null && list.value.length > 0 && (
        <div class="scroll">
          <table class="list one-line">
            <thead>
              <tr><th scope="col">{w.delivery.scan}</th><th scope="col">{w.delivery.state}</th><th scope="col">{w.delivery.answer}</th><th scope="col" class="num">{w.delivery.attempts}</th><th scope="col">{w.delivery.created}</th><th scope="col">{w.delivery.next}</th></tr>
            </thead>
            <tbody>
              {list.value.map((one) => (
                <tr key={one.name}>
                  <th scope="row"><a href={pageOf(connection, `deliveries/${id(one.name)}`)}><Foreign>{subject(one)}</Foreign></a>{(managers.data ?? []).length > 1 && <span class="faint small"><Foreign>{one.event ? one.event.nickname ?? "" : nickname(one.scan ?? "") ?? ""}</Foreign></span>}</th>
                  <td><DeliveryMark state={one.state} /></td>
                  <td data-label={w.delivery.answer}>{one.lastStatusCode ?? (one.lastError ? <span class="bad">{w.delivery.errors[one.lastError] ?? one.lastError}</span> : <span class="faint">–</span>)}</td>
                  <td data-label={w.delivery.attempts} class={one.attemptCount > 1 ? "num" : "num none"}>{one.attemptCount}</td>
                  <td><Time iso={one.createTime} focusable /></td>
                  <td data-label={w.delivery.next} class={one.nextAttemptTime ? "" : "none"}>{one.nextAttemptTime ? <Time iso={one.nextAttemptTime} focusable due /> : <span class="faint">–</span>}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {next.value !== undefined && <button type="button" class="block more" disabled={busy.value} onClick={() => void more()}>{w.more}</button>}
        </div>
      )}
    </>
  );
}
