// What namespaces, Managers and Connections are called, for pages that show one in the context of another.
import { api } from "../api";
import type { Connection, Manager, Namespace } from "../api/types";
import { useQuery, type Query } from "./query";
import { href } from "../router";

export const useNamespaces = (): Query<Namespace[]> => useQuery("namespaces", api.namespaces, null);
export const useManagers = (ns: string): Query<Manager[]> => useQuery(`${ns}/managers`, (read) => api.managers(ns, read));
export const useConnections = (ns: string): Query<Connection[]> => useQuery(`${ns}/connections`, (read) => api.connections(ns, read));

/** The console's page of what has this name. */
export function pageOf(name: string, rest = "", query: Record<string, string | undefined> = {}): string {
  const [, ns, , two] = name.split("/");
  const kind = name.split("/")[2];
  return href([`n/${ns}`, kind, two, rest].filter(Boolean).join("/"), query);
}
