// What the inbox shows: a few quick choices, and the API's `filter` that they come to.
//
// The filter is what counts: it is shown and may be edited, and then the quick choices rest.
import type { Post, Scan } from "../api/types";
import { headline, site } from "./marked";

export interface Choices {
  text: string;
  feed: string;
  score: string;
  value: string;
  label: string;
  time: string;
}

export const NO_CHOICES: Choices = { text: "", feed: "", score: "", value: "", label: "", time: "" };
export const TIMES: Record<string, number> = { "1h": 3_600_000, "24h": 86_400_000, "7d": 7 * 86_400_000, "30d": 30 * 86_400_000 };

/** A choice of feed is `site:<host>` or `place:<name of the subforum>`. */
function feedOf(choice: string): [string, string] {
  const colon = choice.indexOf(":");
  return [choice.slice(0, colon), choice.slice(colon + 1)];
}

function isOfFeed(post: Post, choice: string): boolean {
  const [kind, what] = feedOf(choice);
  return kind === "place" ? post.subforum?.name === what : site(post) === what;
}

export function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

export function toFilter(choices: Choices, now: number): string {
  const parts: string[] = [];
  if (choices.text.trim()) {
    const text = quoted(choices.text.trim());
    parts.push(`(post.title : ${text} OR post.text : ${text} OR post.user.name : ${text})`);
  }
  if (choices.feed) {
    const [kind, what] = feedOf(choices.feed);
    parts.push(kind === "place" ? `post.subforum.name = ${quoted(what)}` : `post.url : ${quoted(`://${what}/`)}`);
  }
  if (choices.score) {
    parts.push(`match.score >= ${Number(choices.score)}`);
  }
  if (choices.value) {
    parts.push(`value = ${choices.value === "right"}`);
  }
  if (choices.label) {
    parts.push(`labels : ${quoted(choices.label)}`);
  }
  const span = TIMES[choices.time];
  if (span !== undefined) {
    // By whole minutes: the same choice is the same filter for a while.
    parts.push(`createTime > ${quoted(new Date(Math.floor((now - span) / 60_000) * 60_000).toISOString())}`);
  }
  return parts.join(" AND ");
}

/** What is on the screen already, narrowed at once; the API's answer follows. */
export function narrowed(scans: Scan[], choices: Choices, now: number): Scan[] {
  const text = choices.text.trim().toLowerCase();
  const label = choices.label.toLowerCase();
  const since = TIMES[choices.time] === undefined ? "" : new Date(now - (TIMES[choices.time] ?? 0)).toISOString();
  return scans.filter((scan) => {
    const { post } = scan;
    return (text === "" || `${headline(post)}\n${post.title ?? ""}\n${post.text ?? ""}\n${post.user.name}`.toLowerCase().includes(text))
      && (choices.feed === "" || isOfFeed(post, choices.feed))
      && (choices.score === "" || scan.match.score >= Number(choices.score))
      && (choices.value === "" || scan.value === (choices.value === "right"))
      && (label === "" || scan.labels.some((one) => one.toLowerCase().includes(label)))
      && scan.createTime > since;
  });
}
