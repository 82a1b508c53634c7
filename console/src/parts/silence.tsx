// Why there is nothing: "nothing matched" and "we could not look" never look alike.
import type { ComponentChildren } from "preact";
import { api } from "../api";
import type { Feed, Manager } from "../api/types";
import { w } from "../words/en";
import { Empty } from "./basics";
import { useQuery } from "./query";
import { once, sum } from "./spans";
import { number, Time } from "./time";

const MAX_MANAGERS = 8;

/** For the Managers that the list is of. */
export function Silence({ managers, scope, filtered, children }: { managers: Manager[]; scope: string; filtered: boolean; children?: ComponentChildren }) {
  const on = managers.filter((one) => one.enable && one.instructions !== undefined).slice(0, MAX_MANAGERS);
  const stats = useQuery(`${scope}/stats?silence`, (read) => api.stats(scope, once("24h"), read));
  const feeds = useQuery(on.length === 0 ? null : `${scope}/silence?${on.map((one) => one.name).join()}`, async (read) =>
    (await Promise.all(on.map((one) => api.feeds(one.name, read)))).flat());
  const posts = stats.data ? sum(stats.data.points, (point) => point.posts) : undefined;
  const blind = feeds.data?.filter((feed) => feed.state !== "OK" && feed.state !== "LATE") ?? [];
  const cannotLook = managers.length > 0 && (on.length === 0
    || managers.every((one) => one.health.state === "FAILING")
    || (feeds.data !== undefined && feeds.data.length > 0 && blind.length === feeds.data.length));
  const title = managers.length === 0 ? w.silence.noManagers : cannotLook ? w.silence.cannotLook : filtered ? w.silence.filtered : w.silence.nothing;
  return (
    <Empty
      title={title}
      why={
        <>
          {managers.length > 0 && on.length === 0 && <p>{managers.some((one) => one.enable) ? w.silence.notApplied : w.silence.allOff}</p>}
          {on.length > 0 && posts !== undefined && <p>{w.silence.read(number(posts))}</p>}
          {feeds.data && feeds.data.length > 0 && <Looks feeds={feeds.data} blind={blind.length} />}
          {(stats.error !== undefined || feeds.error !== undefined) && <p>{w.silence.unknown}</p>}
        </>
      }
    >
      {children}
    </Empty>
  );
}

function Looks({ feeds, blind }: { feeds: Feed[]; blind: number }) {
  const lastPost = feeds.map((feed) => feed.lastPostTime ?? "").sort().at(-1) || undefined;
  const lastPoll = feeds.map((feed) => feed.lastPollTime ?? "").sort().at(-1) || undefined;
  const next = feeds.map((feed) => feed.nextPollTime ?? "").filter(Boolean).sort()[0];
  return (
    <>
      <p>{w.silence.lastPost} <Time iso={lastPost} focusable />. {w.silence.lastLook} <Time iso={lastPoll} focusable />{next && <>, {w.silence.nextLook} <Time iso={next} focusable due /></>}.</p>
      {blind > 0 && <p class="bad">{w.silence.blind(blind, feeds.length)}</p>}
    </>
  );
}
