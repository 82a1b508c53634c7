/** The client: one method for each operation of the API, under the operation's name. */
import { UnexpectedResponseError } from "./errors.js";
import { Transport, type Options } from "./http.js";
import type { components } from "./schema.js";

/** The types of the API, by their names in its description. */
export type Schemas = components["schemas"];

export interface ListOptions {
  filter?: string;
  orderBy?: string;
  /** Default: 100, which is the most. */
  pageSize?: number;
}

export interface StatsOptions {
  startTime: string;
  endTime?: string;
  interval?: Schemas["Interval"];
}

interface CreateOptions {
  /** Default: a random one for each call. */
  idempotencyKey?: string;
}

interface UpdateOptions {
  updateMask?: string;
}

interface DeleteOptions {
  force?: boolean;
}

const NAMESPACE = "namespaces/*";
const MANAGER = "namespaces/*/managers/*";
const SCAN = "namespaces/*/managers/*/scans/*";
const CONNECTION = "namespaces/*/connections/*";
const DELIVERY = "namespaces/*/connections/*/deliveries/*";
const REPLAY = "namespaces/*/connections/*/replays/*";

/**
 * A client with an address and a key.
 *
 * Resources are identified by their `name`, such as `namespaces/…/managers/…`. `list…` methods are async iterators that
 * read page after page as they go. Reads, and creates (which carry an `Idempotency-Key`), are repeated after 429, 503 and
 * lost connections; everything else only after 429. Waits are those of `Retry-After`, at least an exponential backoff with
 * jitter.
 */
export class Earshot {
  readonly #transport: Transport;

  constructor(options: Options) {
    this.#transport = new Transport(options);
  }

  // Keys

  getCaller() {
    return this.#get<Schemas["Caller"]>("caller");
  }

  // Namespaces

  listNamespaces(options: ListOptions = {}) {
    return this.#list<Schemas["Namespace"]>("namespaces", options);
  }

  createNamespace(body: Schemas["CreateNamespace"], options: CreateOptions = {}) {
    return this.#create<Schemas["Namespace"]>("namespaces", body, options);
  }

  getNamespace(name: string) {
    return this.#get<Schemas["Namespace"]>(path(NAMESPACE, name));
  }

  updateNamespace(name: string, body: Schemas["UpdateNamespace"], options: UpdateOptions = {}) {
    return this.#update<Schemas["Namespace"]>(path(NAMESPACE, name), body, options);
  }

  deleteNamespace(name: string, options: DeleteOptions = {}) {
    return this.#delete(path(NAMESPACE, name), options);
  }

  getNamespaceStats(name: string, options: StatsOptions) {
    return this.#stats(path(NAMESPACE, name), options);
  }

  /** Lists the audit events of a Namespace; `namespaces/-` lists those of the whole account. Needs a key of role `OWNER`. */
  listAuditEvents(namespace: string, options: ListOptions = {}) {
    return this.#list<Schemas["AuditEvent"]>(`${path(NAMESPACE, namespace, true)}/auditEvents`, options);
  }

  // Managers

  listManagers(namespace: string, options: ListOptions = {}) {
    return this.#list<Schemas["Manager"]>(`${path(NAMESPACE, namespace)}/managers`, options);
  }

  createManager(namespace: string, body: Schemas["CreateManager"], options: CreateOptions = {}) {
    return this.#create<Schemas["Manager"]>(`${path(NAMESPACE, namespace)}/managers`, body, options);
  }

  getManager(name: string) {
    return this.#get<Schemas["Manager"]>(path(MANAGER, name));
  }

  updateManager(name: string, body: Schemas["UpdateManager"], options: UpdateOptions = {}) {
    return this.#update<Schemas["Manager"]>(path(MANAGER, name), body, options);
  }

  deleteManager(name: string) {
    return this.#delete(path(MANAGER, name));
  }

  applyManager(name: string) {
    return this.#act<Schemas["Manager"]>(path(MANAGER, name), "apply");
  }

  previewManager(name: string, body: Schemas["Preview"]) {
    return this.#act<Schemas["PreviewResults"]>(path(MANAGER, name), "preview", body);
  }

  previewManagerDraft(namespace: string, body: Schemas["PreviewDraft"]) {
    return this.#act<Schemas["PreviewResults"]>(`${path(NAMESPACE, namespace)}/managers`, "preview", body);
  }

  backfillManager(name: string, body: Schemas["CreateBackfill"] = {}) {
    return this.#act<Schemas["Backfill"]>(path(MANAGER, name), "backfill", body);
  }

  getManagerFeeds(name: string) {
    return this.#get<Schemas["FeedList"]>(`${path(MANAGER, name)}/feeds`);
  }

  getManagerStats(name: string, options: StatsOptions) {
    return this.#stats(path(MANAGER, name), options);
  }

  // Scans

  /** Lists a Manager's Scans; `namespaces/…/managers/-` lists those of all Managers of the Namespace. */
  listScans(manager: string, options: ListOptions = {}) {
    return this.#list<Schemas["Scan"]>(`${path(MANAGER, manager, true)}/scans`, options);
  }

  /**
   * Lists the Scans of one Manager that are newer than `after`, oldest first, up to the newest.
   *
   * `after` is the `createTime` of the last Scan that you handled, exactly as it was written; undefined begins with the
   * first. Store it with what you made of the Scan, and nothing is lost or repeated.
   */
  newScans(manager: string, after?: string) {
    const newer = after === undefined ? {} : { filter: `createTime > ${JSON.stringify(after)}` };
    return this.#list<Schemas["Scan"]>(`${path(MANAGER, manager)}/scans`, { orderBy: "createTime asc", ...newer });
  }

  getScan(name: string) {
    return this.#get<Schemas["Scan"]>(path(SCAN, name));
  }

  updateScan(name: string, body: Schemas["UpdateScan"], options: UpdateOptions = {}) {
    return this.#update<Schemas["Scan"]>(path(SCAN, name), body, options);
  }

  // Connections

  listConnections(namespace: string, options: ListOptions = {}) {
    return this.#list<Schemas["Connection"]>(`${path(NAMESPACE, namespace)}/connections`, options);
  }

  createConnection(namespace: string, body: Schemas["CreateConnection"], options: CreateOptions = {}) {
    return this.#create<Schemas["Connection"]>(`${path(NAMESPACE, namespace)}/connections`, body, options);
  }

  getConnection(name: string) {
    return this.#get<Schemas["Connection"]>(path(CONNECTION, name));
  }

  updateConnection(name: string, body: Schemas["UpdateConnection"], options: UpdateOptions = {}) {
    return this.#update<Schemas["Connection"]>(path(CONNECTION, name), body, options);
  }

  deleteConnection(name: string, options: DeleteOptions = {}) {
    return this.#delete(path(CONNECTION, name), options);
  }

  enableConnection(name: string) {
    return this.#act<Schemas["Connection"]>(path(CONNECTION, name), "enable");
  }

  testConnection(name: string) {
    return this.#act<Schemas["TestResult"]>(path(CONNECTION, name), "test");
  }

  getConnectionStats(name: string, options: StatsOptions) {
    return this.#stats(path(CONNECTION, name), options);
  }

  // Deliveries

  /** Lists a Connection's deliveries; `namespaces/…/connections/-` lists those of all Connections. */
  listDeliveries(connection: string, options: ListOptions = {}) {
    return this.#list<Schemas["Delivery"]>(`${path(CONNECTION, connection, true)}/deliveries`, options);
  }

  getDelivery(name: string) {
    return this.#get<Schemas["DeliveryWithAttempts"]>(path(DELIVERY, name));
  }

  retryDelivery(name: string) {
    return this.#act<Schemas["Delivery"]>(path(DELIVERY, name), "retry");
  }

  replayDeliveries(connection: string, body: Schemas["CreateReplay"]) {
    return this.#act<Schemas["Replay"]>(path(CONNECTION, connection), "replay", body);
  }

  listReplays(connection: string, options: ListOptions = {}) {
    return this.#list<Schemas["Replay"]>(`${path(CONNECTION, connection)}/replays`, options);
  }

  getReplay(name: string) {
    return this.#get<Schemas["Replay"]>(path(REPLAY, name));
  }

  cancelReplay(name: string) {
    return this.#delete(path(REPLAY, name));
  }

  // What the methods above share

  #get<T>(path: string, query: Record<string, string | number | undefined> = {}): Promise<T> {
    return this.#transport.call<T>("GET", path, { query });
  }

  async *#list<T>(path: string, options: ListOptions): AsyncGenerator<T, void, undefined> {
    // The last word of the path is the key of the items.
    const itemsKey = path.slice(path.lastIndexOf("/") + 1);
    let pageToken: string | undefined;
    do {
      const { filter, orderBy, pageSize = 100 } = options;
      const page = await this.#get<Record<string, unknown> | null>(path, { filter, orderBy, pageSize, pageToken });
      const items = page?.[itemsKey];
      if (!Array.isArray(items)) {
        throw new UnexpectedResponseError(`the response is not a list of ${itemsKey}`);
      }
      yield* items as T[];
      pageToken = typeof page?.nextPageToken === "string" ? page.nextPageToken : undefined;
    } while (pageToken);
  }

  #create<T>(path: string, body: unknown, { idempotencyKey = crypto.randomUUID() }: CreateOptions): Promise<T> {
    return this.#transport.call<T>("POST", path, { body, idempotencyKey });
  }

  #update<T>(path: string, body: unknown, { updateMask }: UpdateOptions): Promise<T> {
    return this.#transport.call<T>("PATCH", path, { query: { updateMask }, body });
  }

  async #delete(path: string, { force = false }: DeleteOptions = {}): Promise<void> {
    await this.#transport.call("DELETE", path, { query: { force: force ? "true" : undefined } });
  }

  #act<T>(path: string, verb: string, body: unknown = {}): Promise<T> {
    return this.#transport.call<T>("POST", `${path}:${verb}`, { body });
  }

  #stats(path: string, { startTime, endTime, interval }: StatsOptions) {
    return this.#get<Schemas["Stats"]>(`${path}/stats`, { startTime, endTime, interval });
  }
}

/** Returns `name` if it has the form of `pattern`, so that it cannot lead to another path. */
function path(pattern: string, name: string, anyLast = false): string {
  const ids = pattern.replaceAll("*", "[0-9a-z]+");
  const form = anyLast ? ids.replace(/\[0-9a-z\]\+$/, "(-|[0-9a-z]+)") : ids;
  if (!new RegExp(`^${form}$`).test(name)) {
    throw new TypeError(`a name must look like \`${pattern.replaceAll("*", "…")}\` (got \`${name}\`)`);
  }
  return name;
}
