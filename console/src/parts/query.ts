// What a page reads: loaded when first asked for, kept while new data comes, refreshed in the background.
//
// A hidden tab refreshes nothing, and failures make the next try wait longer. What was read is kept in memory for a
// while, bounded, so that going back shows a page at once.
import { useEffect, useReducer, useRef } from "preact/hooks";
import { lastAnswer } from "../api/client";
import type { Read } from "../api";

export const REFRESH_MS = 30_000;
const MAX_REFRESH_MS = 5 * 60_000;
const MAX_KEPT = 40;

interface Kept {
  data: unknown;
  at: number;
}

const kept = new Map<string, Kept>();

function keep(key: string, data: unknown): void {
  kept.delete(key);
  kept.set(key, { data, at: Date.now() });
  for (const oldest of kept.keys()) {
    if (kept.size <= MAX_KEPT) {
      break;
    }
    kept.delete(oldest);
  }
}

/** After something was deleted: no list that names it is shown again. */
export function forgetQueries(): void {
  kept.clear();
}

export function clearQueries(): void {
  forgetQueries();
  lastAnswer.value = 0;
}

export interface Query<T> {
  data: T | undefined;
  error: unknown;
  /** When the data came. */
  at: number | undefined;
  reload: () => void;
  /** Puts in what is known to be true now. */
  set: (data: T) => void;
}

/** Nothing is read while `key` is null. */
export function useQuery<T>(key: string | null, read: (how: Read) => Promise<T>, refreshMs: number | null = REFRESH_MS): Query<T> {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const state = useRef<{ key: string | null; error: unknown; load: () => void }>({ key: null, error: undefined, load: () => undefined });
  const latest = useRef(read);
  latest.current = read;

  useEffect(() => {
    if (key === null) {
      return undefined;
    }
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let failures = 0;
    let busy = false;
    let due = 0;

    const load = async (background: boolean) => {
      if (busy) {
        return;
      }
      busy = true;
      clearTimeout(timer);
      try {
        const data = await latest.current({ signal: leaving.signal, background });
        if (leaving.signal.aborted) {
          return;
        }
        keep(key, data);
        state.current.error = undefined;
        failures = 0;
      } catch (error) {
        if (leaving.signal.aborted) {
          return;
        }
        state.current.error = error;
        failures += 1;
      }
      busy = false;
      redraw(0);
      plan();
    };
    const plan = () => {
      if (refreshMs === null) {
        return;
      }
      const wait = Math.min(MAX_REFRESH_MS, refreshMs * 2 ** failures) * (0.9 + 0.2 * Math.random());
      due = Date.now() + wait;
      if (!document.hidden) {
        timer = setTimeout(() => void load(true), wait);
      }
    };
    const shown = () => {
      clearTimeout(timer);
      if (!document.hidden && refreshMs !== null && !busy) {
        timer = setTimeout(() => void load(true), Math.max(0, due - Date.now()));
      }
    };

    state.current = { key, error: undefined, load: () => void load(false) };
    const old = kept.get(key);
    void load(old !== undefined);
    const retry = () => {
      if (state.current.error !== undefined) {
        void load(false);
      }
    };
    document.addEventListener("visibilitychange", shown);
    addEventListener("earshot:retry", retry);
    addEventListener("online", retry);
    return () => {
      leaving.abort();
      clearTimeout(timer);
      removeEventListener("earshot:retry", retry);
      removeEventListener("online", retry);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [key, refreshMs]);

  const have = key === null ? undefined : kept.get(key);
  const error = state.current.key === key ? state.current.error : undefined;
  return {
    data: have?.data as T | undefined,
    error,
    at: have?.at,
    reload: () => state.current.load(),
    set: (data) => {
      if (key !== null) {
        keep(key, data);
        redraw(0);
      }
    },
  };
}
