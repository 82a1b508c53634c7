/** Client of the REST API of Earshot, and verification of its webhooks. */
export { Earshot, type ListOptions, type Schemas, type StatsOptions } from "./client.js";
export { ApiError, EarshotError, UnexpectedResponseError, UnreachableError, type Detail } from "./errors.js";
export type { Options } from "./http.js";
export { verifyWebhook, WebhookError, type VerifyOptions, type WebhookEvent } from "./webhook.js";
