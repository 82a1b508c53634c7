// The pages of Scans that a list has read, and the new ones that wait until the user asks for them.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Scan } from "../api/types";
import { announce } from "./announce";
import { REFRESH_MS } from "./query";
import { w } from "../words/en";
import { quoted } from "./filter";

export interface Scans {
  list: Scan[];
  /** What `list` was read with; another than asked for while the answer is on its way. */
  of: string | null;
  waiting: Scan[];
  more: boolean;
  busy: boolean;
  error: unknown;
  showWaiting: () => void;
  loadMore: () => void;
  reload: () => void;
  put: (scan: Scan) => void;
}

interface State {
  list: Scan[];
  of: string | null;
  waiting: Scan[];
  next: string | undefined;
  busy: boolean;
  error: unknown;
}

const PAGE_SIZE = 50;
const MAX_WAITING = 100;

/** `manager` may be `namespaces/…/managers/-`. */
export function useScans(manager: string, filter: string): Scans {
  const key = `${manager}?${filter}`;
  const state = useSignal<State>({ list: [], of: null, waiting: [], next: undefined, busy: true, error: undefined });
  const round = useSignal(0);
  const leaving = useRef<AbortController | null>(null);
  const change = (to: Partial<State>) => { state.value = { ...state.value, ...to }; };

  useEffect(() => {
    const stop = new AbortController();
    leaving.current = stop;
    change({ busy: true, error: undefined });
    api.scans(manager, { filter, pageSize: PAGE_SIZE }, { signal: stop.signal }).then(
      (page) => {
        state.value = { list: page.items, of: key, waiting: [], next: page.next, busy: false, error: undefined };
        announce(w.inbox.found(page.items.length, page.next !== undefined));
      },
      (error: unknown) => {
        if (!stop.signal.aborted) {
          change({ busy: false, error });
        }
      },
    );

    let failures = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      const { list, waiting, of } = state.value;
      if (!document.hidden && of === key) {
        // Bounded by time, so that a search is not repeated over everything. An hour covers clocks that differ.
        const since = (waiting[0] ?? list[0])?.createTime ?? new Date(Date.now() - 3_600_000).toISOString();
        const newer = [filter, `createTime > ${quoted(since)}`].filter(Boolean).join(" AND ");
        try {
          const page = await api.scans(manager, { filter: newer, pageSize: MAX_WAITING }, { signal: stop.signal, background: true });
          const known = new Set([...state.value.list, ...state.value.waiting].map((scan) => scan.name));
          const fresh = page.items.filter((scan) => !known.has(scan.name));
          if (fresh.length > 0) {
            change({ waiting: [...fresh, ...state.value.waiting].slice(0, MAX_WAITING) });
          }
          failures = 0;
        } catch {
          failures += 1;
        }
      }
      if (!stop.signal.aborted) {
        plan();
      }
    };
    const plan = () => {
      timer = setTimeout(() => void look(), REFRESH_MS * Math.min(10, 2 ** failures) * (0.9 + 0.2 * Math.random()));
    };
    const retry = () => {
      if (state.value.error !== undefined) {
        round.value += 1;
      }
    };
    plan();
    addEventListener("earshot:retry", retry);
    return () => {
      stop.abort();
      clearTimeout(timer);
      removeEventListener("earshot:retry", retry);
    };
  }, [key, round.value]);

  return {
    ...state.value,
    more: state.value.next !== undefined,
    showWaiting: () => {
      const { waiting, list } = state.value;
      change({ list: [...waiting, ...list], waiting: [] });
      announce(w.inbox.shown(waiting.length));
    },
    loadMore: () => {
      const { next, busy } = state.value;
      const signal = leaving.current?.signal;
      if (next === undefined || busy || !signal) {
        return;
      }
      change({ busy: true });
      api.scans(manager, { filter, pageSize: PAGE_SIZE, pageToken: next }, { signal }).then(
        (page) => {
          const known = new Set(state.value.list.map((scan) => scan.name));
          change({ list: [...state.value.list, ...page.items.filter((scan) => !known.has(scan.name))], next: page.next, busy: false });
        },
        (error: unknown) => {
          if (!signal.aborted) {
            change({ busy: false, error });
          }
        },
      );
    },
    reload: () => { round.value += 1; },
    put: (scan) => {
      change({ list: state.value.list.map((one) => (one.name === scan.name ? scan : one)) });
    },
  };
}
