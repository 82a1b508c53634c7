/** One request after the other, until it is answered: retries, redirects, errors. */
import { ApiError, UnexpectedResponseError, UnreachableError } from "./errors.js";

export interface Options {
  /** The address before `/v1`, for example `https://earshot.example.com`; a final `/v1` is ignored. */
  url: string;
  key: string;
  /** How often a request is repeated, where that is safe and may help. Default: 4. */
  retries?: number;
  /** Default: 60,000. */
  timeoutMs?: number;
  /** The service does everything for real and takes it back. */
  testMode?: boolean;
  /** Waits between tries; for tests. */
  sleep?: (ms: number) => Promise<void>;
}

export interface Call {
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  idempotencyKey?: string;
}

const FIRST_WAIT_MS = 250;
const LONGEST_BACKOFF_MS = 20_000;
/** A longer wait is for the caller to decide. */
const LONGEST_TOLD_SECONDS = 90;

export class Transport {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #retries: number;
  readonly #timeoutMs: number;
  readonly #sleep: (ms: number) => Promise<void>;

  constructor(options: Options) {
    const url = URL.canParse(options.url) ? new URL(options.url) : undefined;
    if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) {
      throw new TypeError("`url` must be the address before `/v1`, for example https://earshot.example.com");
    }
    this.#base = `${url.href.replace(/\/+$/, "").replace(/\/v1$/, "")}/v1/`;
    // A file or variable with a key often ends in a line break.
    this.#headers = { authorization: `Bearer ${options.key.trim()}`, ...(options.testMode ? { "x-test": "true" } : {}) };
    this.#retries = options.retries ?? 4;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
    this.#sleep = options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms)));
  }

  /** Sends a request, and repeats it where that is safe and may help. */
  async call<T>(method: string, path: string, call: Call = {}): Promise<T> {
    const url = new URL(this.#base + path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) {
        url.searchParams.set(name, String(value));
      }
    }
    const headers = { ...this.#headers };
    if (call.idempotencyKey !== undefined) {
      headers["idempotency-key"] = call.idempotencyKey;
    }
    const request: RequestInit = { method, headers };
    if (call.body !== undefined) {
      headers["content-type"] = "application/json";
      request.body = JSON.stringify(call.body);
    }
    const repeatable = method === "GET" || call.idempotencyKey !== undefined;
    for (let tries = 1; ; tries += 1) {
      let wait: number | undefined;
      try {
        return (await this.#once(url, request)) as T;
      } catch (error) {
        wait = waitMs(error, tries, repeatable);
        if (wait === undefined || tries > this.#retries) {
          throw error;
        }
      }
      await this.#sleep(wait);
    }
  }

  async #once(url: URL, request: RequestInit): Promise<unknown> {
    let response: Response;
    let body: string;
    try {
      // Redirects are not followed, so that the key reaches the configured server alone.
      response = await fetch(url, { ...request, redirect: "manual", signal: AbortSignal.timeout(this.#timeoutMs) });
      body = await response.text();
    } catch (cause) {
      throw new UnreachableError(`cannot reach ${this.#base}`, { cause });
    }
    if (!response.ok) {
      throw new ApiError(response.status, response.headers, body);
    }
    try {
      return JSON.parse(body);
    } catch (cause) {
      throw new UnexpectedResponseError("the response is not JSON", { cause });
    }
  }
}

/** Returns how long to wait before the next try, or undefined if there should be none. */
function waitMs(error: unknown, tries: number, repeatable: boolean): number | undefined {
  const backoff = Math.min(FIRST_WAIT_MS * 2 ** (tries - 1), LONGEST_BACKOFF_MS) * (0.5 + Math.random() / 2);
  if (error instanceof UnreachableError) {
    return repeatable ? backoff : undefined;
  }
  // The service refuses with 429 before it does anything, so every request may be repeated after that.
  if (!(error instanceof ApiError) || !(error.status === 429 || (error.status === 503 && repeatable))) {
    return undefined;
  }
  const told = error.retryAfter ?? 0;
  return told > LONGEST_TOLD_SECONDS ? undefined : Math.max(told * 1000, backoff);
}
