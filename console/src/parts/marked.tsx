// A post's words, those that counted marked, and the score on its bar.
import type { Match, Post, Span } from "../api/types";
import { w } from "../words/en";
import { Time } from "./time";
import { Foreign, Outside, safeUrl } from "./basics";

/** Spans count code points, strings count UTF-16: the text is cut accordingly. Never throws, whatever the spans say. */
export function pieces(text: string, spans: Pick<Span, "start" | "end">[]): { text: string; marked: boolean }[] {
  const sorted = spans.filter((span) => span.end > span.start).sort((a, b) => a.start - b.start);
  const found: { text: string; marked: boolean }[] = [];
  if (sorted.length === 0) {
    return [{ text, marked: false }];
  }
  const points = [...text];
  let done = 0;
  for (const span of sorted) {
    const start = Math.max(done, span.start);
    const end = Math.min(points.length, span.end);
    if (end <= start) {
      continue;
    }
    if (start > done) {
      found.push({ text: points.slice(done, start).join(""), marked: false });
    }
    found.push({ text: points.slice(start, end).join(""), marked: true });
    done = end;
  }
  if (done < points.length) {
    found.push({ text: points.slice(done).join(""), marked: false });
  }
  return found;
}

export function Marked({ text, field, match }: { text: string; field: "title" | "text"; match?: Match | undefined }) {
  const spans = (match?.spans ?? []).filter((span) => span.field === field);
  return <bdi dir="auto">{pieces(text, spans).map((piece, place) => (piece.marked ? <mark key={place}>{piece.text}</mark> : piece.text))}</bdi>;
}

/** What stands for a post in one line. */
export function headline(post: Post): string {
  const line = (post.title || post.text || "").trim().split("\n", 1)[0] ?? "";
  return line === "" ? w.post.wordless : line.length > 200 ? `${line.slice(0, 200)}…` : line;
}

/** The host of its address. */
export function site(post: Post): string {
  return safeUrl(post.url)?.host ?? "";
}

export function Byline({ post }: { post: Post }) {
  return (
    <p class="byline">
      <span class="tag">{site(post)}</span>
      {post.subforum && <Foreign>{post.subforum.name}</Foreign>}
      <span>{w.post.by} <Foreign>{post.user.name || post.user.id}</Foreign></span>
      <Time iso={post.time} focusable />
    </p>
  );
}

export function PostText({ post, match, level = 2 }: { post: Post; match?: Match | undefined; level?: 2 | 3 }) {
  const Heading = level === 2 ? "h2" : "h3";
  return (
    <article class="post">
      <Heading class="post-title">{post.title ? <Marked text={post.title} field="title" match={match} /> : <Foreign>{headline(post)}</Foreign>}</Heading>
      <Byline post={post} />
      {post.text && <div class="post-text"><Marked text={post.text} field="text" match={match} /></div>}
      <p><Outside url={post.url} id="open-post">{w.post.open}</Outside></p>
    </article>
  );
}

/** The score, with the threshold on the bar, and one line that says what tipped it. */
export function Score({ match, threshold, value }: { match: Match; threshold: number | undefined; value: boolean }) {
  const calibrated = match.focus !== undefined;
  const most = calibrated ? 1 : Math.max(1, match.score, (threshold ?? 0) * 1.5);
  const at = (score: number) => `${Math.max(0, Math.min(1, score / most)) * 100}%`;
  const score = shownScore(match.score);
  const text = threshold === undefined ? w.score.alone(score) : w.score.of(score, shownScore(threshold));
  return (
    <div class="score">
      <svg class="score-bar" role="img" aria-label={text} width="100%" height="14">
        <rect class="track" x="0" y="4" width="100%" height="6" rx="3" />
        <rect class={match.score >= (threshold ?? -Infinity) ? "fill" : "fill low"} x="0" y="4" width={at(match.score)} height="6" rx="3" />
        {threshold !== undefined && <line class="threshold" x1={at(threshold)} x2={at(threshold)} y1="0" y2="14" />}
      </svg>
      <p class="score-words">{text} <span class="faint">{tipped(match, value)}{match.reader && <> {w.score.reader[match.reader]}</>}{match.judged && ` ${w.score.judged}`}</span></p>
    </div>
  );
}

export function shownScore(score: number): string {
  return score.toLocaleString("en", { maximumFractionDigits: 2, minimumFractionDigits: Number.isInteger(score) ? 0 : 2 });
}

/** What weighed most, in a line. */
function tipped(match: Match, value: boolean): string {
  const terms = match.terms.slice(0, 3);
  const signals = match.signals ? Object.entries(match.signals).sort((a, b) => b[1] - a[1]) : [];
  const signal = signals[0];
  const words = terms.length === 0 ? w.score.noTerms : value ? w.score.tipped(terms, match.terms.length - terms.length) : w.score.counted(terms);
  return signal && signal[1] >= 0.3 ? `${words} ${w.score.signal[signal[0]]?.(Math.round(signal[1] * 100)) ?? ""}` : words;
}
