// The fields of a Connection. Secrets are written and never shown: a field that is left empty keeps what is there.
import { useSignal, type Signal } from "@preact/signals";
import { SERVICE_EVENTS, type Connection, type ServiceEventType } from "../api/types";
import { w } from "../words/en";
import { Field } from "./basics";
import { fieldError } from "./errors";

export interface Draft {
  nickname: string;
  url: string;
  method: "POST" | "PUT" | "PATCH";
  format: NonNullable<Connection["format"]>;
  headers: { name: string; value: string; kept: boolean }[];
  maxPerSecond: string;
  signingSecret: string;
  events: ServiceEventType[];
  period: "SINGLE" | NonNullable<Connection["digest"]>["period"];
  timeZone: string;
}

export const NEW: Draft = {
  nickname: "", url: "", method: "POST", format: "EARSHOT", headers: [], maxPerSecond: "", signingSecret: "", events: [],
  period: "SINGLE", timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
};
const PERIODS: Draft["period"][] = ["SINGLE", "HOURLY", "DAILY"];
const FORMATS: Draft["format"][] = ["EARSHOT", "SLACK", "DISCORD", "TEAMS", "EMAIL"];

export function draftOf(connection: Connection): Draft {
  return {
    nickname: connection.nickname, url: connection.url, method: connection.method, format: connection.format ?? "EARSHOT",
    // Names alone: values are secrets, and do not come back to a screen.
    headers: Object.keys(connection.headers).map((name) => ({ name, value: "", kept: true })),
    maxPerSecond: connection.maxPerSecond?.toString() ?? "", signingSecret: "", events: connection.events ?? [],
    period: connection.digest?.period ?? "SINGLE", timeZone: connection.digest?.timeZone ?? NEW.timeZone,
  };
}

/** As the API takes it; of a Connection that is there, as a merge patch. */
export function body(draft: Draft, old?: Connection): object {
  const isMail = draft.format === "EMAIL";
  // E-mail has neither headers nor a signature.
  const given = isMail ? [] : draft.headers;
  const headers: Record<string, string | null> = {};
  for (const header of given) {
    if (header.name.trim() !== "" && !(header.kept && header.value === "")) {
      headers[header.name.trim()] = header.value;
    }
  }
  for (const name of Object.keys(old?.headers ?? {})) {
    if (!given.some((header) => header.name === name)) {
      headers[name] = null;
    }
  }
  const max = draft.maxPerSecond.trim() === "" ? (old ? null : undefined) : Number(draft.maxPerSecond);
  const none = old?.digest ? null : undefined;
  const digest = isMail && draft.period !== "SINGLE" ? { period: draft.period, timeZone: draft.timeZone.trim() } : none;
  return {
    nickname: draft.nickname, url: draft.url.trim(), method: draft.method, format: draft.format, headers, maxPerSecond: max, events: draft.events, digest,
    ...(old ? {} : { type: "HTTP_CONNECTION" }),
    ...(isMail || draft.signingSecret.trim() === "" ? {} : { signingSecrets: [draft.signingSecret.trim()] }),
  };
}

export function newSecret(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  return `whsec_${btoa(String.fromCharCode(...bytes))}`;
}

export function ConnectionFields({ draft, failed, isNew }: { draft: Signal<Draft>; failed: unknown; isNew: boolean }) {
  const set = (change: Partial<Draft>) => { draft.value = { ...draft.value, ...change }; };
  const wrong = (field: string) => fieldError(failed, field);
  const { nickname, url, method, format, headers, maxPerSecond, signingSecret, events, period, timeZone } = draft.value;
  const isMail = format === "EMAIL";
  const more = useSignal(!isNew);
  return (
    <>
      <Field label={w.nickname} error={wrong("nickname")}>
        {(attributes) => <input {...attributes} dir="auto" maxLength={120} value={nickname} onInput={(event) => set({ nickname: event.currentTarget.value })} />}
      </Field>
      <Field label={w.newConnection.url} hint={w.newConnection.urlHint} error={wrong("url")}>
        {(attributes) => <input {...attributes} type="url" maxLength={2048} placeholder={isMail ? "mailto:…" : "https://…"} value={url} onInput={(event) => set({ url: event.currentTarget.value })} />}
      </Field>
      <Field label={w.newConnection.format} hint={w.newConnection.formatHint} error={wrong("format")}>
        {(attributes) => (
          <select {...attributes} value={format} onChange={(event) => set({ format: event.currentTarget.value as Draft["format"] })}>
            {FORMATS.filter((one) => isNew || (one === "EMAIL") === isMail).map((one) => <option key={one} value={one}>{w.newConnection.formats[one]}</option>)}
          </select>
        )}
      </Field>
      {isMail && (
        <div class="columns">
          <Field label={w.newConnection.digest} hint={w.newConnection.digestHint}>
            {(attributes) => (
              <select {...attributes} value={period} onChange={(event) => set({ period: event.currentTarget.value as Draft["period"] })}>
                {PERIODS.map((one) => <option key={one} value={one}>{w.newConnection.periods[one]}</option>)}
              </select>
            )}
          </Field>
          {period !== "SINGLE" && (
            <Field label={w.newConnection.timeZone} hint={w.newConnection.timeZoneHint} error={wrong("digest.timeZone")}>
              {(attributes) => <input {...attributes} maxLength={64} placeholder="Europe/Berlin" value={timeZone} onInput={(event) => set({ timeZone: event.currentTarget.value })} />}
            </Field>
          )}
        </div>
      )}
      {!isMail && (
        <fieldset>
          <legend>{w.newConnection.headers}</legend>
          <p class="hint">{w.newConnection.headersHint}</p>
          {headers.map((header, at) => {
            const edit = (change: Partial<Draft["headers"][number]>) => set({ headers: headers.map((one, other) => (other === at ? { ...one, ...change } : one)) });
            return (
              <div class="inline-form" key={at}>
                <input aria-label={w.newConnection.headerName} class="mono" placeholder="X-Webhook-Secret" value={header.name} readOnly={header.kept} onInput={(event) => edit({ name: event.currentTarget.value })} />
                <input aria-label={w.newConnection.headerValue} type="password" autocomplete="off" placeholder={header.kept ? w.newConnection.keep : w.newConnection.headerValue} value={header.value} onInput={(event) => edit({ value: event.currentTarget.value })} />
                <button type="button" class="icon" aria-label={w.remove(header.name)} onClick={() => set({ headers: headers.filter((_, other) => other !== at) })}>×</button>
              </div>
            );
          })}
          {headers.length < 20 && <button type="button" onClick={() => set({ headers: [...headers, { name: "", value: "", kept: false }] })}>{w.newConnection.addHeader}</button>}
          {wrong("headers") && <p class="hint bad">{wrong("headers")}</p>}
        </fieldset>
      )}
      <details open={more.value} onToggle={(event) => { more.value = event.currentTarget.open; }}>
        <summary>{isMail ? w.newConnection.moreOfMail : w.newConnection.more}</summary>
        <div class="columns">
          {!isMail && (
            <Field label={w.newConnection.method} error={wrong("method")}>
              {(attributes) => (
                <select {...attributes} value={method} onChange={(event) => set({ method: event.currentTarget.value as Draft["method"] })}>
                  {["POST", "PUT", "PATCH"].map((one) => <option key={one}>{one}</option>)}
                </select>
              )}
            </Field>
          )}
          <Field label={w.newConnection.max} hint={w.newConnection.maxHint} error={wrong("maxPerSecond")}>
            {(attributes) => <input {...attributes} type="number" min="1" max="10000" value={maxPerSecond} onInput={(event) => set({ maxPerSecond: event.currentTarget.value })} />}
          </Field>
        </div>
        {!isMail && (
          <Field label={w.newConnection.secret} hint={isNew ? w.newConnection.secretHint : w.newConnection.secretKept} error={wrong("signingSecrets")}>
            {(attributes) => (
              <div class="joined">
                <input {...attributes} class="mono" autocomplete="off" placeholder="whsec_…" value={signingSecret} onInput={(event) => set({ signingSecret: event.currentTarget.value })} />
                <button type="button" onClick={() => set({ signingSecret: newSecret() })}>{w.newConnection.makeSecret}</button>
              </div>
            )}
          </Field>
        )}
        <fieldset>
          <legend>{w.newConnection.events}</legend>
          <p class="hint">{w.newConnection.eventsHint}</p>
          {SERVICE_EVENTS.map((one) => (
            <label key={one} class="choice">
              <input type="checkbox" checked={events.includes(one)} onChange={() => set({ events: SERVICE_EVENTS.filter((other) => (other === one) !== events.includes(other)) })} /> {w.delivery.events[one]}
            </label>
          ))}
          {wrong("events") && <p class="hint bad">{wrong("events")}</p>}
        </fieldset>
      </details>
    </>
  );
}
