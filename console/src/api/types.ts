// The API's resources by short names.
import type { components } from "../../../clients/typescript/src/schema";

type S = components["schemas"];

export type AuditEvent = S["AuditEvent"];
export type Action = AuditEvent["action"];
export type Caller = S["Caller"];
export type Namespace = S["Namespace"];
export type Connection = S["Connection"];
export type Delivery = S["Delivery"];
export type DeliveryState = S["DeliveryState"];
export type DeliveryWithAttempts = S["DeliveryWithAttempts"];
export type ServiceEventType = S["ServiceEventType"];
export type Attempt = S["DeliveryAttempt"];
export type Replay = S["Replay"];
export type Post = S["Post"];
export type PreviewPost = S["PreviewPost"];
export type Match = S["Match"];
export type Span = NonNullable<Match["spans"]>[number];
export type Mute = S["Mute"];
export type Instructions = S["Instructions"];
export type WatchedName = S["WatchedName"];
export type Focus = S["Focus"];
export type Sells = S["Sells"];
export type Sensitivity = S["Sensitivity"];
export type Stats = S["Stats"];
export type Point = S["StatsPoint"];
export type Interval = S["Interval"];
export type TestResult = S["TestResult"];
export type SourceType = S["Source"]["type"];

export type Manager = S["Manager"];
export type Kind = NonNullable<Manager["kinds"]>[number];
export type Duplicates = NonNullable<Manager["duplicates"]>;
export type Notice = S["Notice"];
export type Scan = S["Scan"];
export type PreviewResult = S["PreviewResults"]["results"][number];
export type Feed = S["Feed"];

export const ACTIONS: Action[] = ["CREATE", "UPDATE", "DELETE", "APPLY", "BACKFILL", "ENABLE", "TEST", "REPLAY", "CANCEL", "RETRY", "READ_SECRETS", "REVOKE"];
export const DELIVERY_STATES: DeliveryState[] = ["PENDING", "IN_FLIGHT", "SUCCEEDED", "RETRYING", "EXHAUSTED", "CANCELLED"];
export const SERVICE_EVENTS: ServiceEventType[] = ["MANAGER_APPLIED", "MANAGER_APPLY_FAILED", "CONNECTION_DISABLED", "COVERAGE_GAP", "POST_DELETED", "POST_EDITED"];
export const FOCUSES: Focus[] = ["SALES", "COMPETITOR", "CRISIS"];
/** All settings, strictest first. */
export const SENSITIVITIES: Sensitivity[] = ["PRECISE", "BALANCED", "BROAD"];
export const SOURCES: SourceType[] = ["FORUM", "MICROBLOG", "NETWORK"];

/** An instant as the API writes it, to the microsecond. */
export function timestamp(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace("Z", "000Z");
}

/** The last segment of a name. */
export function id(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1);
}

/** The name of what holds it: a Scan's Manager, a Manager's Namespace. */
export function parent(name: string): string {
  return name.split("/").slice(0, -2).join("/");
}
