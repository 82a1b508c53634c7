// The Managers of a Namespace: how each is, what it found, and whether it was right.
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Manager, Scan } from "../api/types";
import { id, parent } from "../api/types";
import { tell } from "../parts/announce";
import { Empty, Foreign, Loaded, Page, Switch } from "../parts/basics";
import { Spark } from "../parts/spark";
import { tellError } from "../parts/errors";
import { FeedsMark, ManagerState } from "../parts/health";
import { isJudged } from "../parts/labels";
import { pageOf, useManagers } from "../parts/names";
import { useQuery } from "../parts/query";
import { once, sum } from "../parts/spans";
import { number } from "../parts/time";
import { href } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

/** A read each; of more Managers, the rest go without a spark line and a word on their feeds. */
const MAX_READ = 30;
const CALM_MS = 120_000;

export function Managers({ namespace }: { namespace: string }) {
  const name = `namespaces/${namespace}`;
  const managers = useManagers(name);
  const sparks = useQuery(managers.data ? `${name}/sparks?${managers.data.length}` : null, async (read) => {
    const shown = (managers.data ?? []).slice(0, MAX_READ);
    const points = await Promise.all(shown.map((one) => api.stats(one.name, once("24h"), read)));
    return new Map(shown.map((one, at) => [one.name, points[at]?.points ?? []]));
  }, CALM_MS);
  const watching = (managers.data ?? []).filter((one) => one.enable && one.instructions).slice(0, MAX_READ);
  const feeds = useQuery(watching.length > 0 ? `${name}/watching?${watching.map((one) => id(one.name)).join()}` : null, async (read) =>
    new Map(await Promise.all(watching.map(async (one) => [one.name, await api.feeds(one.name, read)] as const))));
  const judged = useQuery(`${name}/judged`, (read) => api.scans(`${name}/managers/-`, {}, read), CALM_MS);
  const quality = useMemo(() => tally(judged.data?.items ?? []), [judged.data]);
  const create = mayWrite.value && <a class="button primary" href={href(`n/${namespace}/managers/new`)}>{w.managers.new}</a>;

  return (
    <Page title={w.managers.title} wide actions={create}>
      <Loaded query={managers}>
        {(list) => (list.length === 0
          ? <Empty title={w.managers.none} why={w.managers.noneWhy}>{create}</Empty>
          : (
            <div class="scroll">
              <table class="list">
                <thead>
                  <tr>
                    <th scope="col">{w.managers.name}</th>
                    <th scope="col">{w.managers.state}</th>
                    <th scope="col">{w.manager.tabs.feeds}</th>
                    <th scope="col">{w.managers.focus}</th>
                    <th scope="col">{w.managers.day}</th>
                    <th scope="col" title={w.managers.qualityMeans}>{w.managers.quality}</th>
                    <th scope="col">{w.managers.on}</th>
                  </tr>
                </thead>
                <tbody>
                  {list.map((one) => {
                    const points = sparks.data?.get(one.name);
                    const scans = points ? sum(points, (point) => point.scans) : undefined;
                    const said = quality.get(one.name);
                    return (
                      <tr key={one.name}>
                        <th scope="row"><a href={pageOf(one.name)}><Foreign>{one.nickname}</Foreign></a><span class="faint small">{w.sources[one.source.type]} · {w.manager.modes[one.mode]}</span></th>
                        <td><ManagerState manager={one} /></td>
                        <td data-label={w.manager.tabs.feeds}>{watching.includes(one) && feeds.data?.get(one.name) ? <a class="plain-link" href={pageOf(one.name, "feeds")}><FeedsMark feeds={feeds.data.get(one.name) ?? []} /></a> : <span class="faint">–</span>}</td>
                        <td data-label={w.managers.focus}>{focusOf(one)}</td>
                        <td data-label={w.managers.day}>{points && scans !== undefined ? <span class="spark-cell"><Spark values={points.map((point) => point.scans ?? 0)} label={w.managers.scansInDay(number(scans))} /> <span class="num">{number(scans)}</span></span> : <span class="faint">–</span>}</td>
                        <td data-label={w.managers.quality}>{said ? w.managers.ratio(said.right, said.wrong) : <span class="faint">{w.managers.unjudged}</span>}</td>
                        <td class="on"><OnOff manager={one} reload={managers.reload} /></td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          ))}
      </Loaded>
    </Page>
  );
}

export function focusOf(manager: Manager): string {
  const focus = manager.input?.focus.type ?? manager.instructions?.focus;
  return focus ? w.focus[focus] : w.manager.terms;
}

/** Waits for the answer: it decides what is watched. */
export function OnOff({ manager, reload }: { manager: Manager; reload: () => void }) {
  const busy = useSignal(false);
  if (!mayWrite.value) {
    return <span>{manager.enable ? w.on : w.off}</span>;
  }
  const turn = async (enable: boolean) => {
    busy.value = true;
    try {
      await api.updateManager(manager.name, { enable });
      tell(enable ? w.manager.turnedOn : w.manager.turnedOff);
      reload();
    } catch (error) {
      tellError(error);
    } finally {
      busy.value = false;
    }
  };
  return <Switch on={manager.enable} disabled={busy.value} label={w.manager.onOff(manager.nickname)} onChange={(on) => void turn(on)} />;
}

/** Right and wrong, of the newest Scans alone. */
export function tally(scans: Scan[]): Map<string, { right: number; wrong: number }> {
  const found = new Map<string, { right: number; wrong: number }>();
  for (const scan of scans.filter(isJudged)) {
    const manager = parent(scan.name);
    const count = found.get(manager) ?? { right: 0, wrong: 0 };
    count[scan.value ? "right" : "wrong"] += 1;
    found.set(manager, count);
  }
  return found;
}
