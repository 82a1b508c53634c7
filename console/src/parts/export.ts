// Scans as a file: CSV for spreadsheets, JSON Lines for programs.
import { api, PAGE } from "../api";
import type { Scan } from "../api/types";
import { site } from "./marked";

/** More than a spreadsheet is read for; the command line and the API have no such bound. */
export const MAX_EXPORT = 20_000;

const COLUMNS: [string, (scan: Scan) => string][] = [
  ["createTime", (scan) => scan.createTime],
  ["postTime", (scan) => scan.post.time],
  ["site", (scan) => site(scan.post)],
  ["place", (scan) => scan.post.subforum?.name ?? ""],
  ["author", (scan) => scan.post.user.name],
  ["title", (scan) => scan.post.title ?? ""],
  ["text", (scan) => scan.post.text ?? ""],
  ["url", (scan) => scan.post.url],
  ["score", (scan) => String(scan.match.score)],
  ["terms", (scan) => scan.match.terms.join("; ")],
  ["value", (scan) => String(scan.value)],
  ["labels", (scan) => scan.labels.join("; ")],
  ["name", (scan) => scan.name],
];

/** A cell that a spreadsheet would take for a formula gets an apostrophe in front. */
export function cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(scans: Scan[]): string {
  const rows = [COLUMNS.map(([name]) => name), ...scans.map((scan) => COLUMNS.map(([, read]) => cell(read(scan))))];
  // The mark tells spreadsheets that it is UTF-8.
  return `\ufeff${rows.map((row) => row.join(",")).join("\r\n")}\r\n`;
}

export function jsonLines(scans: Scan[]): string {
  return scans.map((scan) => `${JSON.stringify(scan)}\n`).join("");
}

/** Reads page by page, telling how many there are so far. */
export async function readAll(manager: string, filter: string, progress: (count: number) => void, signal: AbortSignal): Promise<Scan[]> {
  const scans: Scan[] = [];
  let pageToken: string | undefined;
  do {
    const page = await api.scans(manager, { filter, pageToken, pageSize: PAGE }, { signal });
    scans.push(...page.items);
    pageToken = page.next;
    progress(scans.length);
  } while (pageToken !== undefined && scans.length < MAX_EXPORT);
  return scans;
}

export function save(name: string, type: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
