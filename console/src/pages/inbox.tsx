// The Scans of all Managers, newest first, and the one that is read.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, curl } from "../api/client";
import type { Manager } from "../api/types";
import { id } from "../api/types";
import { tell } from "../parts/announce";
import { Page } from "../parts/basics";
import { copy, Dialog, Menu } from "../parts/dialog";
import { tellError } from "../parts/errors";
import { csv, jsonLines, MAX_EXPORT, readAll, save } from "../parts/export";
import { narrowed, NO_CHOICES, TIMES, toFilter, type Choices } from "../parts/filter";
import { site } from "../parts/marked";
import { useManagers } from "../parts/names";
import { ScanList } from "../parts/scan-list";
import { useScans } from "../parts/scans";
import { Silence } from "../parts/silence";
import { href, route, setQuery } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

/** Typing waits for a pause before the API is asked. */
const PAUSE_MS = 300;
const FIELDS = Object.keys(NO_CHOICES) as (keyof Choices)[];

function choicesOf(query: URLSearchParams): Choices {
  return Object.fromEntries(FIELDS.map((field) => [field, query.get(field) ?? ""])) as unknown as Choices;
}

export function Inbox({ namespace }: { namespace: string }) {
  const name = `namespaces/${namespace}`;
  const managers = useManagers(name);
  return (
    <ScansView
      title={w.inbox.title} namespace={namespace} managers={managers.data} of={undefined}
    />
  );
}

/** Also the tab of one Manager, which is `of` then. */
export function ScansView({ title, namespace, managers, of }: { title: string | undefined; namespace: string; managers: Manager[] | undefined; of: Manager | undefined }) {
  const query = route.value.query;
  const choices = choicesOf(query);
  const written = query.get("filter");
  const chosenManager = of ? id(of.name) : query.get("manager") || "-";
  const managerName = `namespaces/${namespace}/managers/${chosenManager}`;
  // Times are cut to the minute, and the minute is that of the last change.
  const began = useMemo(() => Date.now(), [query.get("time")]);
  const filter = written ?? toFilter(choices, began);
  const asked = useSignal(filter);
  const field = useRef<HTMLInputElement>(null);
  const exporting = useSignal<"csv" | "jsonl" | null>(null);

  useEffect(() => {
    if (asked.value === filter) {
      return undefined;
    }
    const timer = setTimeout(() => { asked.value = filter; }, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [filter]);

  const scans = useScans(managerName, asked.value);
  const settled = scans.of === `${managerName}?${filter}`;
  const list = useMemo(
    () => (settled || written !== null ? scans.list : narrowed(scans.list, choices, began)),
    [settled, scans.list, filter],
  );
  const feeds = useMemo(() => [...new Set([
    ...scans.list.map((scan) => `site:${site(scan.post)}`),
    ...scans.list.flatMap((scan) => (scan.post.subforum ? [`place:${scan.post.subforum.name}`] : [])),
    ...(choices.feed ? [choices.feed] : []),
  ])].sort(), [scans.list, choices.feed]);
  const wrongFilter = scans.error instanceof ApiError && scans.error.status === 400 ? scans.error.message : undefined;
  const isFiltered = filter !== "" || (of === undefined && chosenManager !== "-");
  const clear = () => setQuery({ ...Object.fromEntries(FIELDS.map((one) => [one, undefined])), filter: undefined, manager: undefined });
  const set = (change: Partial<Choices>) => setQuery({ ...change, filter: undefined });

  const tools = (
    <Menu label={w.inbox.export} button={<>{w.inbox.export} ▾</>}>
      <button type="button" onClick={() => { exporting.value = "csv"; }}>CSV</button>
      <button type="button" onClick={() => { exporting.value = "jsonl"; }}>JSON Lines</button>
      <button type="button" onClick={() => void copy(curl(`${managerName}/scans`, { query: { filter } }))}>{w.object.copyCurl}</button>
    </Menu>
  );
  const body = (
    <>
      <form noValidate class="filters" role="search" aria-label={w.inbox.filters} onSubmit={(event) => event.preventDefault()}>
        <input
          ref={field} type="search" class="search" aria-label={w.inbox.text} placeholder={w.inbox.textHint} dir="auto" maxLength={200}
          value={choices.text} onInput={(event) => set({ text: event.currentTarget.value })}
        />
        <div class="filter-strip">
          {of === undefined && (
            <Choice label={w.inbox.manager} value={chosenManager === "-" ? "" : chosenManager} onChange={(manager) => setQuery({ manager })}
              options={(managers ?? []).map((one) => [id(one.name), one.nickname])} />
          )}
          <Choice label={w.inbox.feed} value={choices.feed} onChange={(feed) => set({ feed })} options={feeds.map((one) => [one, one.slice(one.indexOf(":") + 1)])} groups={[[w.inbox.sites, "site:"], [w.inbox.placesIn, "place:"]]} />
          <Choice label={w.inbox.score} value={choices.score} onChange={(score) => set({ score })} options={["0.5", "0.6", "0.7", "0.8", "0.9"].map((one) => [one, `≥ ${one}`])} />
          <Choice label={w.inbox.value} value={choices.value} onChange={(value) => set({ value })} options={[["right", w.inbox.notWrong], ["wrong", w.scan.wrong]]} />
          <Choice label={w.inbox.time} value={choices.time} onChange={(time) => set({ time })} options={Object.keys(TIMES).map((one) => [one, w.overview.ranges[one as "1h"]])} />
          <input class="label-filter" aria-label={w.inbox.label} placeholder={w.inbox.label} maxLength={50} dir="auto" value={choices.label} onInput={(event) => set({ label: event.currentTarget.value })} />
        </div>
        {title === undefined && <><span class="grow" />{tools}</>}
      </form>
      <div class="filter-line">
        <FilterText filter={filter} problem={wrongFilter} />
        {isFiltered && <button type="button" class="link" onClick={clear}>{w.inbox.clear}</button>}
      </div>
      <ScanList
        scans={scans} list={list} managers={managers} namespace={namespace} showManager={of === undefined && chosenManager === "-" && (managers ?? []).length > 1}
        focusFilter={() => field.current?.focus()}
        empty={
          managers === undefined ? null : (
            <Silence managers={of ? [of] : chosenManager === "-" ? managers : managers.filter((one) => id(one.name) === chosenManager)} scope={chosenManager === "-" ? `namespaces/${namespace}` : managerName} filtered={isFiltered}>
              {isFiltered
                ? <button type="button" onClick={clear}>{w.inbox.clear}</button>
                : managers.length === 0 && mayWrite.value
                  ? <a class="button primary" href={href(`n/${namespace}/managers/new`)}>{w.managers.new}</a>
                  : of === undefined && <a class="button" href={href(`n/${namespace}/managers`)}>{w.silence.seeManagers}</a>}
            </Silence>
          )
        }
      />
      {exporting.value && <Export kind={exporting.value} manager={managerName} filter={filter} onClose={() => { exporting.value = null; }} />}
    </>
  );
  return title === undefined ? body : <Page title={title} wide actions={tools}>{body}</Page>;
}

function Choice({ label, value, options, groups, onChange }: { label: string; value: string; options: [string, string][]; groups?: [string, string][]; onChange: (value: string | undefined) => void }) {
  const shown = (list: [string, string][]) => list.map(([key, text]) => <option key={key} value={key}>{text}</option>);
  return (
    <select aria-label={label} class={value === "" ? "" : "chosen"} value={value} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
      <option value="">{label}</option>
      {groups
        ? groups.map(([title, prefix]) => <optgroup key={prefix} label={title}>{shown(options.filter(([key]) => key.startsWith(prefix)))}</optgroup>)
        : shown(options)}
    </select>
  );
}

/** The API's own words for what is shown. */
function FilterText({ filter, problem }: { filter: string; problem: string | undefined }) {
  const draft = useSignal<string | null>(null);
  const text = draft.value ?? filter;
  return (
    <details class="filter-text" open={problem !== undefined}>
      <summary>{w.inbox.asFilter} <code>{filter || w.inbox.noFilter}</code></summary>
      <form noValidate onSubmit={(event) => { event.preventDefault(); setQuery({ ...Object.fromEntries(FIELDS.map((one) => [one, undefined])), filter: text.trim() || undefined }); draft.value = null; }}>
        <input aria-label={w.inbox.filterField} class="mono" value={text} maxLength={2048} spellcheck={false} aria-invalid={problem !== undefined} onInput={(event) => { draft.value = event.currentTarget.value; }} />
        <button type="submit">{w.inbox.apply}</button>
      </form>
      {problem && <p class="hint bad">{problem}</p>}
    </details>
  );
}

function Export({ kind, manager, filter, onClose }: { kind: "csv" | "jsonl"; manager: string; filter: string; onClose: () => void }) {
  const count = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    readAll(manager, filter, (so) => { count.value = so; }, stop.signal).then(
      (scans) => {
        const day = new Date().toISOString().slice(0, 10);
        if (kind === "csv") {
          save(`scans-${day}.csv`, "text/csv;charset=utf-8", csv(scans));
        } else {
          save(`scans-${day}.jsonl`, "application/jsonl", jsonLines(scans));
        }
        tell(scans.length >= MAX_EXPORT ? w.inbox.exportedSome(scans.length) : w.inbox.exported(scans.length));
        onClose();
      },
      (error: unknown) => {
        if (!stop.signal.aborted) {
          tellError(error);
          onClose();
        }
      },
    );
    return () => stop.abort();
  }, []);
  return (
    <Dialog title={w.inbox.exporting} onClose={onClose}>
      <div class="body"><p role="status">{w.inbox.exportedSoFar(count.value)}</p></div>
      <footer><button type="button" onClick={onClose}>{w.cancel}</button></footer>
    </Dialog>
  );
}
