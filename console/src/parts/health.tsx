// How Managers, Connections, feeds and deliveries are, as one word each and what it means.
import type { Connection, Delivery, Feed, Manager } from "../api/types";
import { w } from "../words/en";
import { State, type Tone } from "./basics";

/** Waiting for longer than this is a backlog. */
const OLD_MS = 10 * 60_000;
const MANY = 100;

export function managerTone(manager: Manager): Tone {
  if (manager.state === "APPLY_FAILED" || manager.health.state === "FAILING") {
    return "bad";
  }
  if (manager.state === "PENDING_APPLY") {
    return "busy";
  }
  return !manager.enable ? "idle" : manager.health.state === "OK" ? "good" : "warn";
}

export function ManagerState({ manager }: { manager: Manager }) {
  const word = manager.state === "APPLY_FAILED" ? w.manager.states.failed
    : manager.state === "PENDING_APPLY" ? w.manager.states.pending
      : manager.health.state === "FAILING" ? w.manager.states.blind
        : !manager.enable ? w.manager.states.off : w.manager.healths[manager.health.state];
  return <State tone={managerTone(manager)} title={manager.health.reasons.map((reason) => w.manager.reasons[reason]).join(" ")}>{word}</State>;
}

export interface ConnectionView {
  tone: Tone;
  word: string;
  why: string | undefined;
}

export function viewConnection(connection: Connection, now: number): ConnectionView {
  const health = connection.health;
  if (connection.state === "DISABLED") {
    return { tone: "idle", word: w.connection.states.paused, why: connection.stateReason };
  }
  if (health?.breaker === "OPEN") {
    return { tone: "bad", word: w.connection.states.resting, why: w.connection.openBreaker };
  }
  if (health?.digestError !== undefined) {
    return { tone: "warn", word: w.connection.states.behind, why: w.connection.digestRests(health.digestError) };
  }
  if (isBacklogged(connection, now)) {
    return { tone: "warn", word: w.connection.states.behind, why: undefined };
  }
  if (health?.breaker === "HALF_OPEN" || (health?.successRate !== undefined && health.successRate < 0.9)) {
    return { tone: "warn", word: w.connection.states.unsteady, why: undefined };
  }
  return health?.successRate === undefined
    ? { tone: "idle", word: w.connection.states.unused, why: undefined }
    : { tone: "good", word: w.connection.states.good, why: undefined };
}

export function isBacklogged(connection: Connection, now: number): boolean {
  const { health } = connection;
  return health !== undefined
    && (health.pending >= MANY || (health.oldestPendingTime !== undefined && now - Date.parse(health.oldestPendingTime) > OLD_MS));
}

export function isFailing(connection: Connection, now: number): boolean {
  return connection.state === "DISABLED" || connection.health?.breaker === "OPEN" || isBacklogged(connection, now)
    || (connection.health?.successRate !== undefined && connection.health.successRate < 0.5);
}

export function ConnectionState({ connection, now }: { connection: Connection; now: number }) {
  const view = viewConnection(connection, now);
  return <State tone={view.tone} title={view.why}>{view.word}</State>;
}

const FEED_TONES: Record<Feed["state"], Tone> = { OK: "good", LATE: "warn", FAILING: "bad", BLOCKED: "bad", BUDGET_SPENT: "warn" };

export function FeedStateMark({ feed }: { feed: Feed }) {
  return <State tone={FEED_TONES[feed.state] ?? "warn"}>{w.feed.states[feed.state] ?? feed.state}</State>;
}

const WORST: Feed["state"][] = ["BLOCKED", "FAILING", "BUDGET_SPENT", "LATE"];

/** All feeds of a Manager by the one that is worst off. */
export function FeedsMark({ feeds }: { feeds: Feed[] }) {
  const worst = WORST.find((state) => feeds.some((feed) => feed.state === state));
  const count = feeds.filter((feed) => feed.state === worst).length;
  return worst === undefined
    ? <State tone={feeds.length === 0 ? "idle" : "good"}>{feeds.length === 0 ? w.feed.none : w.feed.allGood(feeds.length)}</State>
    : <State tone={FEED_TONES[worst]} title={w.feed.means[worst]}>{w.feed.some(count, feeds.length, w.feed.states[worst].toLowerCase())}</State>;
}

const DELIVERY_TONES: Record<Delivery["state"], Tone> = {
  PENDING: "busy", IN_FLIGHT: "busy", SUCCEEDED: "good", RETRYING: "warn", EXHAUSTED: "bad", CANCELLED: "idle",
};

export function DeliveryMark({ state }: { state: Delivery["state"] }) {
  return <State tone={DELIVERY_TONES[state]}>{w.delivery.states[state]}</State>;
}
