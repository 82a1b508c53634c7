// Times and numbers as people read them.
import { signal } from "@preact/signals";
import { w } from "../words/en";

const LOCALE = "en-GB";
const plain = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const clock = new Intl.DateTimeFormat(LOCALE, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat(LOCALE, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

const SOON_MS = 10_000;
const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [["day", 86_400], ["hour", 3_600], ["minute", 60]];

/** Moves on slowly: relative times follow it. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) {
    now.value = Date.now();
  }
}, 10_000);

export function ago(iso: string, at = now.value): string {
  const seconds = Math.round((Date.parse(iso) - at) / 1000);
  for (const [unit, size] of STEPS) {
    if (Math.abs(seconds) >= size) {
      return relative.format(Math.trunc(seconds / size), unit);
    }
  }
  return Math.abs(seconds) < 10 ? w.time.now : relative.format(seconds, "second");
}

/** The exact instant, to the second. */
export function utc(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`;
}

/**
 * Relative, with the instant on hover and focus. `focusable` where nothing around it takes the focus; `due` of what is yet
 * to come, which a clock that is a little behind ours would else call past.
 */
export function Time({ iso, focusable = false, due = false }: { iso: string | undefined; focusable?: boolean; due?: boolean }) {
  if (iso === undefined) {
    return <span class="faint">{w.time.never}</span>;
  }
  return (
    <time class="when" dateTime={iso} data-utc={utc(iso)} tabIndex={focusable ? 0 : undefined}>
      {due && Math.abs(Date.parse(iso) - now.value) < SOON_MS ? w.time.soon : ago(iso)}
    </time>
  );
}

export const number = (value: number) => plain.format(value);
export const short = (value: number) => (value < 10_000 ? plain.format(value) : compact.format(value));
export const percent = (part: number) => new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: part > 0.99 && part < 1 ? 1 : 0 }).format(part);
export const moment = (iso: string) => full.format(new Date(iso));

/** A point of a chart's axis. */
export function tick(iso: string, interval: "1m" | "1h" | "1d"): string {
  const date = new Date(iso);
  return interval === "1d" ? day.format(date) : interval === "1h" ? `${day.format(date)}, ${clock.format(date)}` : clock.format(date);
}

/** The same, as short as an axis has room for. */
export function axisTick(iso: string, interval: "1m" | "1h" | "1d"): string {
  const date = new Date(iso);
  return interval === "1d" || (interval === "1h" && date.getHours() === 0) ? day.format(date) : clock.format(date);
}

export function duration(ms: number): string {
  if (ms < 1_000) {
    return `${Math.round(ms)} ms`;
  }
  const seconds = ms / 1000;
  if (seconds < 120) {
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} d`;
}
