// What failed, why, and what to do about it.
import { ApiError, Unreachable } from "../api/client";
import { w } from "../words/en";
import { warn } from "./announce";

export function errorText(error: unknown): string {
  if (error instanceof ApiError) {
    return w.error.status[error.status] ?? capital(error.message);
  }
  return error instanceof Unreachable ? w.error.unreachable : w.error.unknown;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function issueText(issue: string): string {
  return w.error.issues[issue] ?? issue;
}

/** What did not come of something that was pressed, where no form is to show it in. */
export function tellError(error: unknown, what = ""): void {
  const api = error instanceof ApiError ? error : undefined;
  const details = (api?.details ?? []).map(({ field, issue }) => `${field}: ${issueText(issue)}`);
  const detail = [...details, ...(api?.requestId ? [`${w.error.requestId} ${api.requestId}`] : [])].join("; ");
  warn(`${what} ${errorText(error)}`.trim(), detail);
}

/** A part of a page that could not be had; the rest lives on. */
export function Failed({ error, retry }: { error: unknown; retry?: () => void }) {
  const api = error instanceof ApiError ? error : undefined;
  return (
    <div class="notice bad" role="alert">
      <p><strong>{errorText(error)}</strong></p>
      {api && api.details.length > 0 && (
        <ul>
          {api.details.map(({ field, issue }) => (
            <li key={field + issue}><code>{field}</code>: {issueText(issue)}</li>
          ))}
        </ul>
      )}
      {api && w.error.status[api.status] !== undefined && api.status !== 429 && <p class="faint">{api.message}</p>}
      {api?.requestId && <p class="faint small">{w.error.requestId} <code>{api.requestId}</code></p>}
      {retry && <button type="button" onClick={retry}>{w.error.retry}</button>}
    </div>
  );
}

/** What is wrong with one field of a form, below it. */
export function fieldError(error: unknown, field: string): string | undefined {
  if (!(error instanceof ApiError)) {
    return undefined;
  }
  const found = error.details.filter((detail) => detail.field === field || detail.field.startsWith(`${field}[`) || detail.field.startsWith(`${field}.`));
  return found.length === 0 ? undefined : found.map((detail) => (detail.field === field ? "" : `${detail.field}: `) + issueText(detail.issue)).join(", ");
}
