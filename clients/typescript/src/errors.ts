/** Errors that calls throw. Each is an `EarshotError`. */
import type { components } from "./schema.js";

/** A field that failed. Future versions of the service may add issues. */
export type Detail = NonNullable<components["schemas"]["Error"]["details"]>[number];

const MAX_SHOWN = 300;

export class EarshotError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** There was no response, or it was incomplete. */
export class UnreachableError extends EarshotError {}

/** A successful response is not what the API describes: often another server answered. */
export class UnexpectedResponseError extends EarshotError {}

/** The service answered with an error. */
export class ApiError extends EarshotError {
  /** The HTTP status: 400 for fields that failed, 401 for the key, 403, 404, 429 for the rate limit, 5xx. */
  readonly status: number;
  readonly details: readonly Detail[];
  /** The id to name when you ask the operators about this request. */
  readonly requestId: string | undefined;
  /** Seconds to wait, if the service said so. */
  readonly retryAfter: number | undefined;

  constructor(status: number, headers: Headers, body: string) {
    const { message, details } = parse(body);
    super(`${status} ${message}${details.map(({ field, issue }) => `; ${field}: ${issue}`).join("")}`);
    this.status = status;
    this.details = details;
    this.requestId = headers.get("x-request-id") ?? undefined;
    const after = headers.get("retry-after") ?? "";
    // A proxy may send a date, which is not a number of seconds.
    this.retryAfter = /^[0-9]{1,9}$/.test(after) ? Number(after) : undefined;
  }

  /** Returns whether `field` failed, for the reason `issue` if that is given. */
  hasIssue(field: string, issue?: Detail["issue"]): boolean {
    return this.details.some((detail) => detail.field === field && (issue === undefined || detail.issue === issue));
  }
}

function parse(body: string): { message: string; details: Detail[] } {
  try {
    const { message, details = [] } = JSON.parse(body) as { message?: unknown; details?: Detail[] };
    if (typeof message === "string") {
      return { message, details: details.map(({ field, issue }) => ({ field: String(field), issue })) };
    }
  } catch {
    // For example the error page of a proxy.
  }
  return { message: body.slice(0, MAX_SHOWN).trim() || "without a message", details: [] };
}
