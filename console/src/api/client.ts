// Calls the API: the only module that does.
//
// Reads and creations are repeated when the network, the server or a rate limit stood in the way, with backoff and
// jitter; creations carry an Idempotency-Key, so that they happen once. Other writes are repeated only after 429,
// which says that nothing was done. What runs in the background is never repeated, and is not sent at all while the
// limit holds: people come first.
import { signal } from "@preact/signals";
import type { components } from "../../../clients/typescript/src/schema";

export type Detail = { field: string; issue: string };

/** The API refused, or failed. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly details: Detail[],
    readonly requestId: string | undefined,
  ) {
    super(message);
  }

  /** Whether a field, or one below it, was refused for this reason. */
  has(issue: string, field?: string): boolean {
    return this.details.some((detail) => detail.issue === issue && (field === undefined || detail.field.startsWith(field)));
  }
}

/** No answer: no network, no server, or none in time. */
export class Unreachable extends Error {}

export interface Ask {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  signal?: AbortSignal | undefined;
  background?: boolean | undefined;
  /** Makes something new, and may be repeated. */
  create?: boolean;
  /** Done for real and taken back (`x-test`). */
  test?: boolean;
  timeoutMs?: number;
}

export type Link = { state: "ok" } | { state: "offline" | "failing"; since: number; retryAt: number };

/** How the way to the API is. */
export const link = signal<Link>({ state: "ok" });
/** Until when the key has no points, in milliseconds since 1970. */
export const limitedUntil = signal(0);
/** When the last good answer came. */
export const lastAnswer = signal(0);

const TIMEOUT_MS = 15_000;
const TRIES = 4;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 8_000;

let key: string | null = null;
let refused: () => void = () => undefined;
const waiting = new Set<() => void>();

addEventListener("online", retryNow);

/** Which key to show, and whom to tell that it is not taken. */
export function use(newKey: string | null, onRefused: () => void): void {
  key = newKey;
  refused = onRefused;
}

/** Ends all waits: somebody wants to try now. */
export function retryNow(): void {
  for (const wake of [...waiting]) {
    wake();
  }
}

/** Where the API is: beside the folder that the page is in, so that a path prefix stays. */
export function address(path: string, query?: Ask["query"]): URL {
  const url = new URL(`../v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== "") {
      url.searchParams.set(name, String(value));
    }
  }
  return url;
}

/** The same request as a line for a shell, the key by its variable. */
export function curl(path: string, ask: Ask = {}): string {
  const words = ["curl", '-H "Authorization: Bearer $EARSHOT_API_KEY"'];
  const method = ask.method ?? "GET";
  if (method !== "GET" && !(method === "POST" && ask.body !== undefined)) {
    words.push(`-X ${method}`);
  }
  if (ask.body !== undefined) {
    words.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(ask.body))}`);
  }
  words.push(quoted(address(path, ask.query).href));
  return words.join(" \\\n  ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * Sign-in by a provider, which is no part of the API: next to the page, with its cookie or, to sign out, a token. Steps
 * of a sign-in are never repeated, because each works once.
 */
export async function signInStep<T>(path: "sign-in" | "sign-in/token" | "sign-in/end", token?: string): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (token !== undefined) {
    headers["authorization"] = `Bearer ${token}`;
  }
  const { answer, text } = await fetched(new URL(path, document.baseURI), AbortSignal.timeout(TIMEOUT_MS), {
    method: path === "sign-in" ? "GET" : "POST",
    headers,
    credentials: token === undefined ? "same-origin" : "omit",
    // Closing the page does not take it back.
    keepalive: path === "sign-in/end",
  });
  const body = parsed(text);
  if (!answer.ok || body === undefined) {
    throw new ApiError(answer.status, `status ${answer.status}`, [], answer.headers.get("x-request-id") ?? undefined);
  }
  return body as T;
}

/** Ends a session. It is repeated: a session that stays valid is a risk, and ending it twice does no harm. */
export async function endSession(token: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await signInStep("sign-in/end", token);
      return;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : undefined;
      if (status === 401) {
        // It has ended before.
        return;
      }
      const again = error instanceof Unreachable || status === 429 || status === 503;
      if (!again || tries === TRIES) {
        throw error;
      }
      await sleep(FIRST_WAIT_MS * 2 ** (tries - 1) * (0.5 + Math.random()), undefined);
    }
  }
}

export async function call<T>(path: string, ask: Ask = {}): Promise<T> {
  const method = ask.method ?? "GET";
  const repeatable = (method === "GET" || ask.create === true) && !ask.background;
  const idempotencyKey = ask.create ? random() : undefined;
  for (let tries = 1; ; tries += 1) {
    if (ask.background && limitedUntil.value > Date.now()) {
      throw new ApiError(429, "rate limit exceeded", [], undefined);
    }
    try {
      const answer = await once<T>(path, ask, idempotencyKey);
      link.value = { state: "ok" };
      lastAnswer.value = Date.now();
      return answer;
    } catch (error) {
      if (ask.signal?.aborted) {
        throw error;
      }
      const limited = error instanceof ApiError && error.status === 429;
      const transient = error instanceof Unreachable || (error instanceof ApiError && (error.status >= 500 || error.status === 408));
      const wait = limited
        ? Math.max(0, limitedUntil.value - Date.now()) + Math.random() * 500
        : Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 1)) * (0.5 + Math.random());
      const again = tries < TRIES && ((limited && !ask.background) || (transient && repeatable));
      if (transient) {
        broken(error instanceof Unreachable ? "offline" : "failing", again ? Date.now() + wait : 0);
      } else if (!limited && error instanceof ApiError) {
        link.value = { state: "ok" };
      }
      if (!again) {
        throw error;
      }
      await sleep(wait, ask.signal);
    }
  }
}

function broken(state: "offline" | "failing", retryAt: number): void {
  const before = link.value;
  const since = before.state === "ok" ? Date.now() : before.since;
  link.value = { state, since, retryAt };
}

/** The whole answer of a request that is not repeated, cached or led elsewhere. */
async function fetched(url: URL, timeout: AbortSignal, ask: RequestInit, stop?: AbortSignal): Promise<{ answer: Response; text: string }> {
  const signal = stop ? AbortSignal.any([stop, timeout]) : timeout;
  try {
    const answer = await fetch(url, { ...ask, signal, cache: "no-store", redirect: "error" });
    return { answer, text: await answer.text() };
  } catch (cause) {
    if (stop?.aborted) {
      throw cause;
    }
    throw new Unreachable(timeout.aborted ? "no answer in time" : "the server cannot be reached", { cause });
  }
}

async function once<T>(path: string, ask: Ask, idempotencyKey: string | undefined): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (key !== null) {
    headers["authorization"] = `Bearer ${key}`;
  }
  if (ask.body !== undefined) {
    headers["content-type"] = "application/json";
  }
  if (idempotencyKey !== undefined) {
    headers["idempotency-key"] = idempotencyKey;
  }
  if (ask.test) {
    headers["x-test"] = "true";
  }
  const url = address(path, ask.query);
  if (url.origin !== location.origin) {
    throw new Error("the key is for this origin alone");
  }
  const usedKey = key;
  const { answer, text } = await fetched(url, AbortSignal.timeout(ask.timeoutMs ?? TIMEOUT_MS), {
    method: ask.method ?? "GET",
    headers,
    body: ask.body === undefined ? null : JSON.stringify(ask.body),
    credentials: "omit",
  }, ask.signal);
  const body = parsed(text);
  if (answer.ok && body !== undefined) {
    return body as T;
  }
  if (answer.ok) {
    throw new Unreachable("the answer is not of the API");
  }
  if (answer.status === 429) {
    const seconds = Number(answer.headers.get("retry-after"));
    limitedUntil.value = Date.now() + 1000 * Math.min(120, Number.isFinite(seconds) && seconds > 0 ? seconds : 5);
  }
  const error = (body ?? {}) as Partial<components["schemas"]["Error"]>;
  const failed = new ApiError(
    answer.status,
    typeof error.message === "string" ? error.message : `status ${answer.status}`,
    Array.isArray(error.details) ? error.details : [],
    answer.headers.get("x-request-id") ?? undefined,
  );
  // Not when another key has been entered meanwhile.
  if (answer.status === 401 && usedKey === key) {
    refused();
  }
  throw failed;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function sleep(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      waiting.delete(end);
      signal?.removeEventListener("abort", end);
      if (signal?.aborted) {
        reject(signal.reason);
      } else {
        resolve();
      }
    };
    const timer = setTimeout(end, milliseconds);
    waiting.add(end);
    signal?.addEventListener("abort", end);
  });
}

/** Not `crypto.randomUUID`, which pages served by plain HTTP do not have. */
function random(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
