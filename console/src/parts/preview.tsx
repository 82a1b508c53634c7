// What instructions make of recent posts: each with its verdict, its reason and its score; before and after a change.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api, type Read } from "../api";
import type { Instructions, Manager, Post, PreviewPost, PreviewResult } from "../api/types";
import { w } from "../words/en";
import { Foreign, State } from "./basics";
import { Byline, headline, Marked, Score } from "./marked";

export interface Judged {
  post: Post;
  result: PreviewResult;
}

export const RECENT = 100;

/** What the Manager's instructions, or those of a draft, make of the newest posts of its feeds. */
export async function previewRecent(manager: Manager, draft: Instructions | undefined, read: Read): Promise<Judged[]> {
  return paired((await api.preview(manager.name, { recent: RECENT }, draft, read)).results);
}

export async function previewPosts(manager: string, posts: Post[], draft: Instructions | undefined, read: Read = {}): Promise<Judged[]> {
  const plain = posts.map(({ type, time, id, title, text, url, subforum, user }): PreviewPost => ({
    type, time, id, url, user,
    ...(title === undefined ? {} : { title }), ...(text === undefined ? {} : { text }), ...(subforum === undefined ? {} : { subforum }),
  }));
  const { results } = await api.preview(manager, { posts: plain }, draft, read);
  return results.flatMap((result, at) => (posts[at] ? [{ post: posts[at], result }] : []));
}

export function paired(results: PreviewResult[]): Judged[] {
  return results.flatMap((result) => (result.post ? [{ post: result.post, result }] : []));
}

/** Which gate it failed, or that it passed. */
export function Verdict({ result }: { result: PreviewResult }) {
  return <State tone={result.value ? "good" : "idle"} title={w.reason.means[result.reason]}>{w.reason.words[result.reason] ?? result.reason}</State>;
}

export function JudgedPost({ judged, threshold, mark }: { judged: Judged; threshold: number | undefined; mark?: ComponentChildren }) {
  const { post, result } = judged;
  const open = useSignal(false);
  return (
    <li class="judged">
      <details onToggle={(event) => { open.value = event.currentTarget.open; }}>
        <summary>
          {mark}
          <Verdict result={result} />
          <span class="judged-title"><Foreign>{headline(post)}</Foreign></span>
        </summary>
        {open.value && (
          <div class="judged-body">
            <Byline post={post} />
            {post.title && <p><strong><Marked text={post.title} field="title" match={result.match} /></strong></p>}
            {post.text && <div class="post-text"><Marked text={post.text} field="text" match={result.match} /></div>}
            <p class="faint small">{w.reason.means[result.reason]}</p>
            <Score match={result.match} threshold={threshold} value={result.value} />
          </div>
        )}
      </details>
    </li>
  );
}

const SHOWN = 20;

export function PreviewList({ list, threshold }: { list: Judged[]; threshold: number | undefined }) {
  const all = useSignal(false);
  const sorted = useMemo(() => [...list].sort((a, b) => Number(b.result.value) - Number(a.result.value) || b.result.match.score - a.result.match.score), [list]);
  const matched = sorted.filter((one) => one.result.value).length;
  if (sorted.length === 0) {
    return <p class="faint">{w.preview.noPosts}</p>;
  }
  return (
    <>
      <p>{w.preview.count(matched, sorted.length)}</p>
      <ul class="rows">{(all.value ? sorted : sorted.slice(0, SHOWN)).map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} />)}</ul>
      {!all.value && sorted.length > SHOWN && <button type="button" class="block more" onClick={() => { all.value = true; }}>{w.preview.all(sorted.length)}</button>}
    </>
  );
}

/** Kept, lost, gained; those that change are listed first. */
export function Comparison({ before, after, threshold }: { before: Judged[]; after: Judged[]; threshold: number | undefined }) {
  const groups = useMemo(() => {
    const old = new Map(before.map((one) => [one.post.id, one.result.value]));
    const was = (one: Judged) => old.get(one.post.id) ?? false;
    return {
      kept: after.filter((one) => was(one) && one.result.value),
      lost: after.filter((one) => was(one) && !one.result.value),
      gained: after.filter((one) => !was(one) && one.result.value),
    };
  }, [before, after]);
  const kept = useSignal(false);
  return (
    <div class="comparison">
      <p role="status">
        <strong>{w.preview.kept(groups.kept.length)}</strong>, <strong class={groups.lost.length > 0 ? "bad" : ""}>{w.preview.lost(groups.lost.length)}</strong>, <strong>{w.preview.gained(groups.gained.length)}</strong>{" "}
        <span class="faint">{w.preview.ofRecent(after.length)}</span>
      </p>
      <ul class="rows">
        {groups.lost.map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} mark={<span class="tag bad">− {w.preview.lostMark}</span>} />)}
        {groups.gained.map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} mark={<span class="tag good">+ {w.preview.gainedMark}</span>} />)}
        {kept.value && groups.kept.map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} mark={<span class="tag">= {w.preview.keptMark}</span>} />)}
      </ul>
      {groups.kept.length > 0 && <button type="button" class="block more" aria-expanded={kept.value} onClick={() => { kept.value = !kept.value; }}>{kept.value ? w.preview.hideKept : w.preview.showKept(groups.kept.length)}</button>}
    </div>
  );
}
