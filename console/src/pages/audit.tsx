// The audit log: who changed what, when, and from where.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api, type Page as Part } from "../api";
import { ACTIONS, id, type AuditEvent } from "../api/types";
import { Empty, Foreign, Page, Skeleton } from "../parts/basics";
import { Failed } from "../parts/errors";
import { quoted, TIMES } from "../parts/filter";
import { pageOf, useNamespaces } from "../parts/names";
import { Time } from "../parts/time";
import { route, setQuery } from "../router";
import { caller } from "../session";
import { w } from "../words/en";

const PAGE_SIZE = 50;
const HAVE_PAGES = ["managers", "connections"];

function toFilter(query: URLSearchParams): string {
  const parts: string[] = [];
  const action = query.get("action") ?? "";
  if (ACTIONS.some((one) => one === action)) {
    parts.push(`action = ${action}`);
  }
  const span = TIMES[query.get("time") ?? ""];
  if (span !== undefined) {
    parts.push(`createTime > ${quoted(new Date(Date.now() - span).toISOString())}`);
  }
  return parts.join(" AND ");
}

export function AuditLog() {
  const query = route.value.query;
  const list = useSignal<Part<AuditEvent> | null>(null);
  const failed = useSignal<unknown>(undefined);
  const round = useSignal(0);
  const namespaces = useNamespaces().data ?? [];
  const hasAll = caller.value?.namespaces === undefined;
  const first = namespaces[0];
  const scope = query.get("namespace") ?? (hasAll ? "-" : first && id(first.name));
  const nickname = (event: AuditEvent) => namespaces.find((one) => event.resource.startsWith(one.name))?.nickname ?? "";

  const load = async (signal?: AbortSignal) => {
    const old = signal ? null : list.value;
    try {
      const page = await api.auditEvents(`namespaces/${scope}`, { filter: toFilter(query), pageSize: PAGE_SIZE, pageToken: old?.next }, signal ? { signal } : {});
      // Another list is shown by now, or the button was pressed twice.
      if (signal?.aborted || (!signal && list.value !== old)) {
        return;
      }
      list.value = { items: [...(old?.items ?? []), ...page.items], next: page.next };
      failed.value = undefined;
    } catch (error) {
      if (!signal?.aborted) {
        failed.value = error;
      }
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    list.value = null;
    failed.value = undefined;
    if (scope !== undefined) {
      void load(stop.signal);
    }
    return () => stop.abort();
  }, [scope, query.get("action"), query.get("time"), round.value]);

  const choice = (name: string, label: string, options: [string, string][]) => (
    <select aria-label={label} class={query.get(name) ? "chosen" : ""} value={query.get(name) ?? ""} onChange={(event) => setQuery({ [name]: event.currentTarget.value || undefined })}>
      <option value="">{label}</option>
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
  return (
    <Page title={w.audit.title} lead={w.audit.lead} wide>
      <form noValidate class="filters" role="search" aria-label={w.delivery.filters} onSubmit={(event) => event.preventDefault()}>
        {(hasAll || namespaces.length > 1) && choice("namespace", hasAll ? w.audit.all : w.nav.namespace, namespaces.map((one): [string, string] => [id(one.name), one.nickname]))}
        {choice("action", w.audit.action, ACTIONS.map((one): [string, string] => [one, w.audit.actions[one]]))}
        {choice("time", w.inbox.time, Object.keys(TIMES).map((one): [string, string] => [one, w.overview.ranges[one as "1h"]]))}
      </form>
      {failed.value !== undefined && <Failed error={failed.value} retry={() => { round.value += 1; }} />}
      {list.value === null && failed.value === undefined && <Skeleton rows={6} />}
      {list.value?.items.length === 0 && <Empty title={w.audit.none} />}
      {list.value !== null && list.value.items.length > 0 && (
        <div class="scroll">
          <table class="list">
            <thead>
              <tr><th scope="col">{w.audit.resource}</th><th scope="col">{w.audit.action}</th><th scope="col">{w.audit.time}</th><th scope="col">{w.audit.actor}</th><th scope="col">{w.audit.address}</th></tr>
            </thead>
            <tbody>
              {list.value.items.map((one) => (
                <tr key={one.name}>
                  <th scope="row"><Resource name={one.resource} /><span class="faint small"><Foreign>{nickname(one)}</Foreign></span></th>
                  <td>{w.audit.actions[one.action]}<span class="faint small"> {(one.fields ?? []).join(", ")}</span></td>
                  <td data-label={w.audit.time}><Time iso={one.createTime} focusable /></td>
                  <td data-label={w.audit.actor}>{one.actor.key ? <code>{one.actor.key}</code> : w.audit.operator}</td>
                  <td data-label={w.audit.address} class={one.clientAddress ? "" : "none"}>{one.clientAddress ?? "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {list.value.next !== undefined && <button type="button" class="block more" onClick={() => void load()}>{w.more}</button>}
        </div>
      )}
    </Page>
  );
}

/** A link where the console has a page of it; the resource may be deleted by now. */
function Resource({ name }: { name: string }) {
  const [, namespace, kind, object, inner] = name.split("/");
  if (!name.startsWith("namespaces/")) {
    return <code>{name}</code>;
  }
  const text = [kind, object, ...name.split("/").slice(4)].filter(Boolean).join("/") || `namespaces/${namespace}`;
  return object !== undefined && inner === undefined && HAVE_PAGES.includes(kind ?? "") ? <a href={pageOf(name)}><code>{text}</code></a> : <code>{text}</code>;
}
