// What instructions make of recent posts: each with its verdict, its reason and its score; before and after a change.
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api, type Read } from "../api";
import type { Instructions, Manager, Post, PreviewPost, PreviewResult } from "../api/types";
import { parent } from "../api/types";
import { w } from "../words/en";
import { Foreign, State } from "./basics";
import { isUnknownHere } from "./errors";
import { Byline, headline, Marked, Score } from "./marked";

export interface Judged {
  post: Post;
  result: PreviewResult;
}

export interface Previewed {
  list: Judged[];
  /** The gateway keeps no posts to look back at: these are from Scans, so that nothing new can show. */
  fromScans: boolean;
}

export const RECENT = 100;
/** Below the API's bound on a body, with room for escapes. */
const MAX_CHARS = 100_000;

export async function previewRecent(manager: Manager, draft: Instructions | undefined, read: Read): Promise<Previewed> {
  try {
    const { results } = await api.preview(manager.name, { recent: RECENT }, draft, read);
    return { list: paired(results), fromScans: false };
  } catch (error) {
    if (!isUnknownHere(error)) {
      throw error;
    }
  }
  const type = { FORUM: "FORUM_LINK", MICROBLOG: "MICROBLOG_TWEET", NETWORK: "NETWORK_POST" }[manager.source.type];
  const scans = await api.scans(`${parent(manager.name)}/managers/-`, { filter: `post.type = ${type}` }, read);
  const posts: Post[] = [];
  let left = MAX_CHARS;
  for (const { post } of scans.items) {
    left -= (post.text?.length ?? 0) + (post.title?.length ?? 0) + 600;
    if (left > 0 && !posts.some((one) => one.id === post.id)) {
      posts.push(post);
    }
  }
  return { list: posts.length === 0 ? [] : await previewPosts(manager.name, posts, draft, read), fromScans: true };
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

export function PreviewList({ previewed, threshold }: { previewed: Previewed; threshold: number | undefined }) {
  const all = useSignal(false);
  const sorted = useMemo(() => [...previewed.list].sort((a, b) => Number(b.result.value) - Number(a.result.value) || b.result.match.score - a.result.match.score), [previewed]);
  const matched = sorted.filter((one) => one.result.value).length;
  if (sorted.length === 0) {
    return <p class="faint">{previewed.fromScans ? w.preview.noScans : w.preview.noPosts}</p>;
  }
  return (
    <>
      <p>{w.preview.count(matched, sorted.length)} {previewed.fromScans && <span class="faint">{w.preview.fromScans}</span>}</p>
      <ul class="rows">{(all.value ? sorted : sorted.slice(0, SHOWN)).map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} />)}</ul>
      {!all.value && sorted.length > SHOWN && <button type="button" class="block more" onClick={() => { all.value = true; }}>{w.preview.all(sorted.length)}</button>}
    </>
  );
}

/** Kept, lost, gained. */
export function Comparison({ before, after, threshold }: { before: Previewed; after: Previewed; threshold: number | undefined }) {
  const groups = useMemo(() => {
    const was = new Map(before.list.map((one) => [one.post.id, one.result.value]));
    const of = (old: boolean, fresh: boolean) => after.list.filter((one) => was.get(one.post.id) === old && one.result.value === fresh);
    return { lost: of(true, false), gained: of(false, true), kept: of(true, true) };
  }, [before, after]);
  return (
    <div class="comparison">
      <p role="status">
        <strong>{w.preview.kept(groups.kept.length)}</strong>, <strong class={groups.lost.length > 0 ? "bad" : ""}>{w.preview.lost(groups.lost.length)}</strong>, <strong>{w.preview.gained(groups.gained.length)}</strong>{" "}
        <span class="faint">{w.preview.ofRecent(after.list.length)} {after.fromScans && w.preview.fromScans}</span>
      </p>
      <ul class="rows">
        {groups.lost.map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} mark={<span class="tag bad">− {w.preview.lostMark}</span>} />)}
        {groups.gained.map((one) => <JudgedPost key={one.post.id} judged={one} threshold={threshold} mark={<span class="tag good">+ {w.preview.gainedMark}</span>} />)}
      </ul>
    </div>
  );
}
