// The operations that the console uses, a line each.
import { call, type Ask } from "./client";
import type {
  AuditEvent, Caller, Connection, Delivery, DeliveryState, DeliveryWithAttempts, Feed, Instructions, Interval, Manager, Namespace, PreviewPost,
  PreviewResult, Replay, Scan, Stats, TestResult,
} from "./types";

/** What every read takes. */
export interface Read {
  signal?: AbortSignal;
  background?: boolean;
}

export interface ListQuery {
  pageSize?: number;
  pageToken?: string | undefined;
  filter?: string | undefined;
  orderBy?: string | undefined;
}

export interface Page<T> {
  items: T[];
  next: string | undefined;
}

/** The most that a page may have. */
export const PAGE = 100;
/** No list that is read whole goes on for ever. */
const MAX_PAGES = 20;

async function list<T>(path: string, key: string, query: ListQuery, read: Read): Promise<Page<T>> {
  const answer = await call<Record<string, unknown>>(path, { ...read, query: { pageSize: PAGE, ...query } });
  return { items: (answer[key] ?? []) as T[], next: answer["nextPageToken"] as string | undefined };
}

async function all<T>(path: string, key: string, read: Read): Promise<T[]> {
  const items: T[] = [];
  let pageToken: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    const page: Page<T> = await list(path, key, { pageToken }, read);
    items.push(...page.items);
    pageToken = page.next;
    if (pageToken === undefined) {
      break;
    }
  }
  return items;
}

const post = <T>(path: string, body?: unknown, more: Ask = {}) => call<T>(path, { method: "POST", body, ...more });
const patch = <T>(path: string, body: unknown, updateMask?: string) =>
  call<T>(path, { method: "PATCH", body, query: { updateMask } });
const remove = (path: string, force = false) =>
  call<object>(path, { method: "DELETE", query: { force: force ? true : undefined } });

/** What makes the service work may take longer than a read. */
const LONG_MS = 30_000;

export const api = {
  caller: (read: Read = {}) => call<Caller>("caller", read),

  namespaces: (read: Read) => all<Namespace>("namespaces", "namespaces", read),
  createNamespace: (nickname: string) => post<Namespace>("namespaces", { nickname }, { create: true }),
  namespace: (name: string, read: Read) => call<Namespace>(name, read),
  updateNamespace: (name: string, change: object) => patch<Namespace>(name, change),

  managers: (namespace: string, read: Read) => all<Manager>(`${namespace}/managers`, "managers", read),
  manager: (name: string, read: Read) => call<Manager>(name, read),
  createManager: (namespace: string, body: object) => post<Manager>(`${namespace}/managers`, body, { create: true }),
  updateManager: (name: string, change: object, mask?: string) => patch<Manager>(name, change, mask),
  deleteManager: (name: string) => remove(name),
  applyManager: (name: string) => post<Manager>(`${name}:apply`, {}),
  preview: (
    name: string,
    what: { posts: PreviewPost[] } | { recent: number } | { urls: string[] },
    instructions: Instructions | undefined,
    read: Read = {},
  ) => post<{ results: PreviewResult[] }>(`${name}:preview`, { ...what, instructions }, { ...read, timeoutMs: LONG_MS }),
  backfill: (name: string, startTime: string) =>
    post<{ feeds: { feed: string; reachTime?: string }[] }>(`${name}:backfill`, { startTime, notify: false }, { timeoutMs: LONG_MS }),
  feeds: async (manager: string, read: Read) => (await call<{ feeds: Feed[] }>(`${manager}/feeds`, read)).feeds,

  /** Of one Manager, or of all with `-` for it. */
  scans: (manager: string, query: ListQuery, read: Read) => list<Scan>(`${manager}/scans`, "scans", query, read),
  scan: (name: string, read: Read) => call<Scan>(name, read),
  updateScan: (name: string, change: { value?: boolean; labels?: string[] }) => patch<Scan>(name, change),

  connections: (namespace: string, read: Read) => all<Connection>(`${namespace}/connections`, "connections", read),
  connection: (name: string, read: Read) => call<Connection>(name, read),
  createConnection: (namespace: string, body: object) => post<Connection>(`${namespace}/connections`, body, { create: true }),
  updateConnection: (name: string, change: object, mask?: string) => patch<Connection>(name, change, mask),
  deleteConnection: (name: string, force: boolean) => remove(name, force),
  enableConnection: (name: string) => post<Connection>(`${name}:enable`, {}),
  testConnection: (name: string) => post<TestResult>(`${name}:test`, {}, { timeoutMs: LONG_MS }),

  deliveries: (connection: string, query: ListQuery, read: Read) =>
    list<Delivery>(`${connection}/deliveries`, "deliveries", query, read),
  delivery: (name: string, read: Read) => call<DeliveryWithAttempts>(name, read),
  retryDelivery: (name: string) => post<Delivery>(`${name}:retry`, {}),
  /** `test` only counts. */
  replay: (connection: string, window: { startTime: string; endTime?: string; states?: DeliveryState[] }, test: boolean) =>
    post<Replay>(`${connection}:replay`, window, { test, timeoutMs: LONG_MS }),
  replays: (connection: string, read: Read) => list<Replay>(`${connection}/replays`, "replays", { pageSize: 10 }, read),
  cancelReplay: (name: string) => remove(name),

  /** Of one Namespace, or of the whole account with `-` for it. */
  auditEvents: (namespace: string, query: ListQuery, read: Read) =>
    list<AuditEvent>(`${namespace}/auditEvents`, "auditEvents", query, read),

  stats: (name: string, span: { startTime: string; endTime?: string; interval: Interval }, read: Read) =>
    call<Stats>(`${name}/stats`, { ...read, query: span }),
};
