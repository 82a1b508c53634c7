// Routes behind `#`: any path prefix works, and no name of a customer's reaches an access log.
import { signal } from "@preact/signals";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export const route = signal(parse(location.hash));

let arrived = false;

function show(next: Route): void {
  if (next.path.join("/") !== route.value.path.join("/")) {
    arrived = true;
  }
  route.value = next;
}

addEventListener("hashchange", () => show(parse(location.hash)));

/** Whether somebody came to another page since this was asked last: its heading takes the focus then. */
export function hasArrived(): boolean {
  const was = arrived;
  arrived = false;
  return was;
}

/** The address of a page of the console. */
export function href(path: string, query: Record<string, string | undefined> = {}): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = new URLSearchParams(given).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
    show(parse(to));
  } else {
    location.hash = to;
  }
}

/** Changes parts of the query alone; what is empty goes. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const query = Object.fromEntries(route.value.query);
  go(href(route.value.path.join("/"), { ...query, ...changes }), true);
}
