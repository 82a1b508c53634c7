/** Verification of webhooks, as https://www.standardwebhooks.com describes it. */
import { EarshotError } from "./errors.js";
import type { components } from "./schema.js";

export type WebhookEvent = components["schemas"]["namespace-feed-notice-request-body"];

/** The request is not a genuine webhook: answer 401 and do nothing else. */
export class WebhookError extends EarshotError {}

export interface VerifyOptions {
  /** How far the time of the webhook may be from now. Default: 300. */
  toleranceSeconds?: number;
  /** The present time in milliseconds; for tests. */
  now?: number;
}

type RequestHeaders = Headers | Record<string, string | string[] | undefined>;

/**
 * Checks the signature and the age of a webhook and returns its event.
 *
 * `secrets` are `signingSecrets` of the Connection, one or both; `headers` those of fetch or of Node; `body` is the
 * request's body, byte for byte. Throws a `WebhookError` if the request is not genuine, and a `TypeError` if a secret is
 * malformed.
 */
export async function verifyWebhook(
  secrets: string | readonly string[],
  headers: RequestHeaders,
  body: Uint8Array | string,
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const keys = (typeof secrets === "string" ? [secrets] : secrets).map(keyOf);
  if (keys.length === 0) {
    throw new TypeError("`secrets` is empty: give the signing secret of the Connection");
  }
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^[0-9]{1,15}$/.test(timestamp)) {
    throw new WebhookError("`webhook-timestamp` is not a number of seconds");
  }
  const tolerance = options.toleranceSeconds ?? 300;
  if (Math.abs((options.now ?? Date.now()) / 1000 - Number(timestamp)) > tolerance) {
    throw new WebhookError(`\`webhook-timestamp\` is more than ${tolerance} s from now`);
  }
  const encoder = new TextEncoder();
  const content = typeof body === "string" ? encoder.encode(body) : body;
  const head = encoder.encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(head.length + content.length);
  signed.set(head);
  signed.set(content, head.length);
  const given = signatures.split(" ").flatMap((part) => (part.startsWith("v1,") ? (bytes(part.slice(3)) ?? []) : []));
  let genuine = false;
  for (const key of keys) {
    const imported = await crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of given) {
      // Takes the same time wherever the signatures differ.
      genuine = (await crypto.subtle.verify("HMAC", imported, signature, signed)) || genuine;
    }
  }
  if (!genuine) {
    throw new WebhookError("no signature matches");
  }
  try {
    return JSON.parse(new TextDecoder().decode(content)) as WebhookEvent;
  } catch (cause) {
    throw new WebhookError("the body is not JSON", { cause });
  }
}

function header(headers: RequestHeaders, name: string): string {
  let value: string | string[] | null | undefined;
  if (headers instanceof Headers) {
    value = headers.get(name);
  } else {
    // Node's names are lower case; some frameworks and gateways keep those of the sender.
    value = headers[name] ?? Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  }
  if (Array.isArray(value) && value.length === 1) {
    value = value[0];
  }
  if (typeof value !== "string") {
    throw new WebhookError(`the header \`${name}\` is missing`);
  }
  return value;
}

function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const key = secret.startsWith("whsec_") ? bytes(secret.slice(6)) : undefined;
  if (!key || key.length < 24 || key.length > 64) {
    throw new TypeError("a signing secret is `whsec_` and the base64 of 24 to 64 bytes");
  }
  return key;
}

function bytes(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}
