// Where a Manager looks, and whether it sees; and having it look back.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { timestamp, type Feed, type Manager } from "../api/types";
import { Act, Empty, Foreign, Outside, Skeleton } from "../parts/basics";
import { Failed } from "../parts/errors";
import { FeedStateMark } from "../parts/health";
import { useQuery } from "../parts/query";
import { number, Time, utc } from "../parts/time";
import { mayWrite } from "../session";
import { w } from "../words/en";

export function ManagerFeeds({ manager }: { manager: Manager }) {
  const feeds = useQuery(`${manager.name}/feeds`, (read) => api.feeds(manager.name, read));
  return (
    <>
      {feeds.error !== undefined && <Failed error={feeds.error} retry={feeds.reload} />}
      {feeds.data === undefined && feeds.error === undefined && <Skeleton />}
      {feeds.data?.length === 0 && <Empty title={w.feed.none} why={manager.enable ? w.feed.noneWhy : w.silence.allOff} />}
      {feeds.data && feeds.data.length > 0 && (
        <div class="scroll">
          <table class="list">
            <thead>
              <tr>
                <th scope="col">{w.feed.feed}</th><th scope="col">{w.managers.state}</th><th scope="col">{w.feed.last}</th><th scope="col">{w.feed.next}</th>
                <th scope="col">{w.feed.lastPost}</th><th scope="col" class="num">{w.feed.posts}</th><th scope="col" class="num">{w.feed.scans}</th><th scope="col" class="num">{w.feed.gaps}</th><th scope="col" class="num">{w.feed.quarantined}</th>
              </tr>
            </thead>
            <tbody>{feeds.data.map((feed) => <Row key={feed.feed} feed={feed} />)}</tbody>
          </table>
        </div>
      )}
      {feeds.data && <Days feeds={feeds.data} />}
      {mayWrite.value && <Backfill manager={manager} />}
    </>
  );
}

/** Gaps that are listed in one row. */
const GAPS = 3;

/** What was read of each feed, day by day. */
function Days({ feeds }: { feeds: Feed[] }) {
  const rows = feeds.flatMap((feed) => feed.days.map((day) => ({ feed: feed.feed, day })));
  if (rows.length === 0) {
    return null;
  }
  return (
    <section class="block">
      <h2>{w.feed.days}</h2>
      <p class="faint">{w.feed.daysMean}</p>
      <div class="scroll">
        <table class="list">
          <thead>
            <tr>
              <th scope="col">{w.feed.feed}</th><th scope="col">{w.feed.day}</th><th scope="col" class="num">{w.feed.read}</th><th scope="col" class="num">{w.feed.late}</th>
              <th scope="col" class="num">{w.feed.gone}</th><th scope="col" class="num">{w.feed.ids}</th><th scope="col" class="num">{w.feed.quarantined}</th><th scope="col" class="num">{w.feed.gaps}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ feed, day }) => (
              <tr key={`${feed} ${day.day}`}>
                <th scope="row"><code><Foreign>{feed}</Foreign></code></th>
                <td data-label={w.feed.day}>{day.day}</td>
                <td data-label={w.feed.read} class="num">{number(day.read)}</td>
                <td data-label={w.feed.late} class="num">{number(day.late)}</td>
                <td data-label={w.feed.gone} class="num">{number(day.gone)}</td>
                <td data-label={w.feed.ids} class="num">{day.ids ? <IdAccount ids={day.ids} /> : "–"}</td>
                <td data-label={w.feed.quarantined} class="num">{number(day.quarantined)}</td>
                <td data-label={w.feed.gaps} class="num">
                  {number(day.gapCount)}
                  {day.gaps.slice(0, GAPS).map((gap, at) => <span key={at} class="faint small">{w.feed.gap(gap.from && utc(gap.from), utc(gap.to), gap.reason)}{gap.state === "FILLED" && ` ${w.feed.filled}`}</span>)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** Unexplained ids that are named in one row. */
const NAMED = 5;

function IdAccount({ ids }: { ids: NonNullable<Feed["days"][number]["ids"]> }) {
  const all = ids.read + ids.other + ids.gone + ids.notVisible + ids.unexplained;
  const named = ids.unexplainedIds.slice(0, NAMED).join(", ");
  return (
    <>
      {number(all - ids.notVisible - ids.unexplained)} / {number(all)}
      {ids.notVisible > 0 && <span class="faint small">{w.feed.notVisible(ids.notVisible)}</span>}
      {ids.unexplained > 0 && <span class="faint small">{w.feed.unexplained(ids.unexplained, named)}</span>}
    </>
  );
}

function Row({ feed }: { feed: Feed }) {
  return (
    <tr>
      <th scope="row"><code><Foreign>{feed.feed}</Foreign></code>{feed.url && <span class="small"><Outside url={feed.url} /></span>}{feed.state !== "OK" && <span class="faint small">{[w.feed.means[feed.state], feed.error].filter(Boolean).join(" ")}</span>}{feed.notice && <span class="faint small">{feed.notice}</span>}</th>
      <td><FeedStateMark feed={feed} /></td>
      <td data-label={w.feed.last}><Time iso={feed.lastPollTime} focusable /></td>
      <td data-label={w.feed.next}>{feed.nextPollTime ? <Time iso={feed.nextPollTime} focusable due /> : "–"}</td>
      <td data-label={w.feed.lastPost}><Time iso={feed.lastPostTime} focusable /></td>
      <td data-label={w.feed.posts} class="num">{feed.postsPerDay === undefined ? "–" : perDay(feed.postsPerDay)}</td>
      <td data-label={w.feed.scans} class="num">{perDay(feed.scansPerDay)}</td>
      <td data-label={w.feed.gaps} class="num">{number(feed.gaps)}</td>
      <td data-label={w.feed.quarantined} class="num">{number(feed.quarantinedPosts)}{feed.lastQuarantine && <span class="faint small">{w.feed.quarantinedWhy(feed.lastQuarantine.reason)}</span>}</td>
    </tr>
  );
}

/** Few a day are worth a digit behind the point. */
function perDay(count: number): string {
  return number(count < 10 ? Math.round(count * 10) / 10 : Math.round(count));
}

const DAYS = [1, 7, 30];

function Backfill({ manager }: { manager: Manager }) {
  const days = useSignal(7);
  const failed = useSignal<unknown>(undefined);
  const answer = useSignal<{ feed: string; reachTime?: string }[] | null>(null);
  const run = async () => {
    failed.value = undefined;
    // A minute less than the bound, so that clocks that differ do no harm.
    const start = timestamp(Date.now() - days.value * 86_400_000 + 60_000);
    answer.value = (await api.backfill(manager.name, start)).feeds;
  };
  return (
    <section class="block">
      <h2>{w.backfill.title}</h2>
      <p class="faint">{w.backfill.means}</p>
      <div class="actions">
        <select aria-label={w.backfill.reach} value={days.value} onChange={(event) => { days.value = Number(event.currentTarget.value); }}>
          {DAYS.map((one) => <option key={one} value={one}>{w.backfill.days(one)}</option>)}
        </select>
        <Act run={run} onError={(error) => { failed.value = error; }}>{w.backfill.run}</Act>
      </div>
      {failed.value !== undefined && <Failed error={failed.value} />}
      {answer.value && (
        <ul class="plain" role="status">
          {answer.value.map((one) => <li key={one.feed}><code>{one.feed}</code> {one.reachTime ? <>{w.backfill.back} <Time iso={one.reachTime} focusable /></> : w.backfill.cannot}</li>)}
          {answer.value.length === 0 && <li>{w.backfill.none}</li>}
        </ul>
      )}
    </section>
  );
}
