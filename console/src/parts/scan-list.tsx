// List of Scans next to the open one, and the keyboard shortcuts of the inbox.
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Manager, Scan } from "../api/types";
import { id, parent } from "../api/types";
import { href, route, setQuery } from "../router";
import { mayWrite, shortcuts } from "../session";
import { w } from "../words/en";
import { announce, undoLast } from "./announce";
import { Failed } from "./errors";
import { Foreign, Skeleton } from "./basics";
import { useKeys, type Bindings } from "./keys";
import { isJudged, judge, LabelDialog, muteAtOnce, MuteDialog } from "./labels";
import { headline, shownScore, site } from "./marked";
import { useNamespaces } from "./names";
import { useQuery } from "./query";
import { ScanPane } from "./scan-pane";
import type { Scans } from "./scans";
import { Time } from "./time";

interface Props {
  scans: Scans;
  /** What is shown of them. */
  list: Scan[];
  managers: Manager[] | undefined;
  namespace: string;
  empty: ComponentChildren;
  showManager: boolean;
  focusFilter?: () => void;
}

/** In the query: which Scan is open. */
const OPEN = "scan";
/** In the query: the open Scan is about to be muted. */
const MUTE = "mute";

export function ScanList({ scans, list, managers, namespace, empty, showManager, focusFilter }: Props) {
  const open = route.value.query.get(OPEN);
  const listed = useMemo(() => scans.list.find((scan) => short(scan) === open), [scans.list, open]);
  // A link to a Scan that is not among those listed.
  const apart = useQuery(open !== null && listed === undefined && scans.of !== null ? fullName(namespace, open) : null, (read) => api.scan(fullName(namespace, open ?? ""), read), null);
  const selected = listed ?? (open === null ? undefined : apart.data);
  const byName = useMemo(() => new Map((managers ?? []).map((one) => [one.name, one])), [managers]);
  const namespaces = useNamespaces();
  const dialog = useSignal<"label" | "mute" | null>(null);
  const rows = useRef<HTMLUListElement>(null);
  const drawn = useRef(new WeakMap<Scan, { current: boolean; manager: string | undefined; node: VNode }>());
  // Unchanged rows are not rendered again: typing into the filter renders only rows that come and go.
  const row = (scan: Scan, current: boolean, manager: string | undefined) => {
    const known = drawn.current.get(scan);
    if (known && known.current === current && known.manager === manager) {
      return known.node;
    }
    const node = <Row key={scan.name} scan={scan} current={current} manager={manager} />;
    drawn.current.set(scan, { current, manager, node });
    return node;
  };
  const put = (scan: Scan) => {
    scans.put(scan);
    if (apart.data?.name === scan.name) {
      apart.set(scan);
    }
  };

  const choose = (scan: Scan | undefined) => {
    if (scan) {
      setQuery({ [OPEN]: short(scan) });
      announce(headline(scan.post));
    }
  };
  const move = (by: number) => {
    const from = route.peek().query.get(OPEN);
    const at = list.findIndex((scan) => short(scan) === from);
    choose(list[at === -1 ? 0 : Math.max(0, Math.min(list.length - 1, at + by))]);
  };
  // A mail leads here, where the Scan is about to be muted.
  const mutes = route.value.query.get(MUTE) !== null;
  useEffect(() => {
    if (mutes && selected && mayWrite.value) {
      dialog.value = "mute";
      setQuery({ [MUTE]: undefined });
    }
  }, [mutes, selected?.name]);
  useEffect(() => {
    rows.current?.querySelector("[aria-current=true]")?.scrollIntoView({ block: "nearest" });
  }, [open]);

  const bindings: Bindings = {
    j: () => move(1),
    k: () => move(-1),
    u: () => { undoLast(); },
  };
  if (focusFilter) {
    bindings["/"] = focusFilter;
  }
  if (selected) {
    // Keys may come faster than pages are drawn: they mean the Scan that was moved to last.
    const meant = () => scans.list.find((scan) => short(scan) === route.peek().query.get(OPEN)) ?? selected;
    bindings["o"] = () => document.getElementById("open-post")?.click();
    if (mayWrite.value) {
      const say = (value: boolean) => () => {
        const scan = meant();
        void judge(scan, value, put, byName.get(parent(scan.name)));
      };
      bindings["y"] = say(true);
      bindings["n"] = say(false);
      bindings["a"] = () => void muteAtOnce(meant(), "AUTHOR");
      bindings["p"] = () => void muteAtOnce(meant(), "SUBFORUM");
      bindings["l"] = () => { dialog.value = "label"; };
      bindings["m"] = () => { dialog.value = "mute"; };
    }
  }
  useKeys(bindings);

  return (
    <div class={`reader${selected ? " open" : ""}${list.length === 0 && open === null && scans.of !== null && !scans.busy ? " bare" : ""}`}>
      <section class="reader-list" aria-label={w.inbox.list}>
        {(list.length > 0 || scans.waiting.length > 0) && (
          // A separate line, so that new Scans move nothing.
          <div class="list-head">
            {scans.waiting.length > 0
              ? <button type="button" class="fresh" onClick={scans.showWaiting}>{w.inbox.fresh(scans.waiting.length)}</button>
              : <span class="faint small">{w.inbox.found(list.length, scans.more)}</span>}
          </div>
        )}
        {scans.error !== undefined && <Failed error={scans.error} retry={scans.reload} />}
        {scans.of === null && scans.error === undefined && <Skeleton rows={8} />}
        {scans.of !== null && list.length === 0 && !scans.busy && scans.error === undefined && empty}
        <ul class="rows" ref={rows} aria-busy={scans.busy}>
          {list.map((scan) => row(scan, short(scan) === open, showManager ? byName.get(parent(scan.name))?.nickname : undefined))}
        </ul>
        {scans.more && <button type="button" class="block more" aria-busy={scans.busy} onClick={scans.loadMore}>{w.more}</button>}
      </section>
      <section class="pane" aria-label={w.inbox.reading}>
        {selected
          ? (
            <ScanPane
              scan={selected} manager={byName.get(parent(selected.name))} put={put}
              onLabel={() => { dialog.value = "label"; }} onMute={() => { dialog.value = "mute"; }}
              back={<button type="button" class="pane-back" aria-label={w.inbox.back} onClick={() => setQuery({ [OPEN]: undefined })}>←</button>}
            />
          )
          : apart.error !== undefined ? <Failed error={apart.error} retry={apart.reload} />
            : list.length > 0 && <p class="pane-empty">{w.inbox.choose}{shortcuts.value && <><br /><span class="faint small"><kbd>j</kbd> <kbd>k</kbd> {w.inbox.keysMove} · <kbd>?</kbd> {w.inbox.keysAll}</span></>}</p>}
      </section>
      {selected && dialog.value === "label" && <LabelDialog scan={selected} put={put} onClose={() => { dialog.value = null; }} />}
      {selected && dialog.value === "mute" && <MuteDialog scan={selected} namespace={namespaces.data?.find((one) => id(one.name) === namespace)} onClose={() => { dialog.value = null; }} />}
    </div>
  );
}

function Row({ scan, current, manager }: { scan: Scan; current: boolean; manager: string | undefined }) {
  return (
    <li>
      <a
        class={scan.value ? "row" : "row wrong"} href={href(route.peek().path.join("/"), { [OPEN]: short(scan) })} aria-current={current}
        onClick={(event) => {
          if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
            event.preventDefault();
            setQuery({ [OPEN]: short(scan) });
          }
        }}
      >
        <span class="row-title">{isJudged(scan) && <span class={scan.value ? "verdict good" : "verdict bad"}><span aria-hidden="true">{scan.value ? "✓" : "✕"}</span><span class="hidden">{scan.value ? w.scan.right : w.scan.wrong}: </span></span>}<Foreign>{headline(scan.post)}</Foreign></span>
        <span class="row-meta">
          <span class="row-score" title={w.score.title}>{shownScore(scan.match.score)}</span>
          <span class="row-where"><Foreign>{scan.post.subforum?.name ?? site(scan.post)}</Foreign>{manager && <> · <Foreign>{manager}</Foreign></>}</span>
          {scan.labels.map((label) => <span class="chip" key={label}><Foreign>{label}</Foreign></span>)}
          <Time iso={scan.createTime} />
        </span>
      </a>
    </li>
  );
}

function short(scan: Scan): string {
  return `${id(parent(scan.name))}.${id(scan.name)}`;
}

function fullName(namespace: string, open: string): string {
  const [manager = "", scan = ""] = open.split(".");
  return `namespaces/${namespace}/managers/${encodeURIComponent(manager)}/scans/${encodeURIComponent(scan)}`;
}
