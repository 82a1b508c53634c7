// Whose console this is: the key, what it may do, and what the browser remembers.
//
// The key is in sessionStorage alone, and leaves it when its owner signs out or the API refuses it. Who signs in by a
// provider gets one that ends by itself.
import { computed, signal } from "@preact/signals";
import { api } from "./api";
import { ApiError, endSession, signInStep, use } from "./api/client";
import type { Caller } from "./api/types";
import { clearQueries } from "./parts/query";
import { go, href, route } from "./router";

const KEY = "earshot.key";
const PLACE = "earshot.place";
const THEME = "earshot.theme";
const SHORTCUTS = "earshot.shortcuts";

export type Theme = "auto" | "light" | "dark";

export const key = signal<string | null>(stored(sessionStorage, KEY));
export const caller = signal<Caller | null>(null);
/** Why there is no key any more. */
export const ended = signal<"refused" | "signed-out" | "not-revoked" | null>(null);
export const theme = signal<Theme>((stored(localStorage, THEME) as Theme | null) ?? "auto");
/** Whether single letters do something. */
export const shortcuts = signal(stored(localStorage, SHORTCUTS) !== "off");

export const mayWrite = computed(() => caller.value !== null && caller.value.role !== "VIEWER");
export const mayAudit = computed(() => caller.value?.role === "OWNER");
export const mayCreateNamespaces = computed(() => caller.value?.role === "OWNER" && caller.value.namespaces === undefined);

use(key.value, () => end("refused"));

/** Storage may be forbidden; the console works without, until it is reloaded. */
function stored(storage: Storage, name: string): string | null {
  try {
    return storage.getItem(name);
  } catch {
    return null;
  }
}

function store(storage: Storage, name: string, value: string | null): void {
  try {
    if (value === null) {
      storage.removeItem(name);
    } else {
      storage.setItem(name, value);
    }
  } catch {
    // Then it is for this page alone.
  }
}

/** Takes a key if the API does. */
export async function signIn(candidate: string): Promise<void> {
  use(candidate, () => undefined);
  try {
    caller.value = await api.caller();
  } catch (error) {
    use(key.value, () => end("refused"));
    throw error;
  }
  keep(candidate);
}

function keep(taken: string): void {
  clearQueries();
  ended.value = null;
  key.value = taken;
  store(sessionStorage, KEY, taken);
  use(taken, () => end("refused"));
}

/** Asks what the key at hand may do. */
export async function resume(): Promise<void> {
  try {
    caller.value = await api.caller();
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) {
      throw error;
    }
  }
}

/** Remembers the page to come back to from the provider, also after a sign-in that failed. */
export function leave(): void {
  if (route.value.path[0] !== "sign-in") {
    store(sessionStorage, PLACE, location.hash);
  }
}

/**
 * Takes the token of a person who came back from the provider, and shows the page that they left. The token is kept before
 * the first request with it, which may fail: no one else could end its session.
 */
export async function comeBack(): Promise<void> {
  const { token } = await signInStep<{ token: string }>("sign-in/token");
  go(stored(sessionStorage, PLACE) ?? href(""), true);
  store(sessionStorage, PLACE, null);
  keep(token);
}

/** Forgets the key. A session ends at the server, too. */
export async function signOut(): Promise<void> {
  const session = caller.value?.person === undefined ? null : key.value;
  end("signed-out");
  if (session !== null) {
    await endSession(session).catch(() => { ended.value = "not-revoked"; });
  }
}

export function end(why: "refused" | "signed-out"): void {
  store(sessionStorage, KEY, null);
  use(null, () => undefined);
  clearQueries();
  key.value = null;
  caller.value = null;
  ended.value = why;
}

export function setTheme(value: Theme): void {
  theme.value = value;
  store(localStorage, THEME, value === "auto" ? null : value);
  showTheme();
}

export function showTheme(): void {
  if (theme.value === "auto") {
    delete document.documentElement.dataset["theme"];
  } else {
    document.documentElement.dataset["theme"] = theme.value;
  }
}

export function setShortcuts(on: boolean): void {
  shortcuts.value = on;
  store(localStorage, SHORTCUTS, on ? null : "off");
}
