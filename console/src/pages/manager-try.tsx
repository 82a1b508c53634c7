// What a Manager makes of a post: pasted, by its address, or the last hundred that were read.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { timestamp, type Manager, type Post } from "../api/types";
import { Act, Empty, Field, safeUrl } from "../parts/basics";
import { Failed } from "../parts/errors";
import { Marked, Score } from "../parts/marked";
import { paired, PreviewList, previewPosts, previewRecent, Verdict, type Judged } from "../parts/preview";
import { w } from "../words/en";

export function ManagerTry({ manager }: { manager: Manager }) {
  const title = useSignal("");
  const text = useSignal("");
  const result = useSignal<Judged | null>(null);
  const recent = useSignal<Judged[] | null>(null);
  const failed = useSignal<unknown>(undefined);
  const threshold = manager.instructions?.threshold;

  if (!manager.instructions) {
    return <Empty title={w.looks.none} why={w.looks.noneYet} />;
  }
  const begin = () => {
    failed.value = undefined;
    result.value = null;
    recent.value = null;
  };
  const judge = async () => {
    begin();
    const address = title.value.trim() === "" ? safeUrl(text.value.trim()) : undefined;
    if (address && !/\s/.test(text.value.trim())) {
      const { results } = await api.preview(manager.name, { urls: [address.href] }, undefined);
      result.value = paired(results)[0] ?? (results[0] ? { post: madeUp(manager, "", address.href), result: results[0] } : null);
      return;
    }
    result.value = (await previewPosts(manager.name, [madeUp(manager, title.value.trim(), text.value)], undefined))[0] ?? null;
  };
  const onError = (error: unknown) => { failed.value = error; };
  const judged = result.value;
  return (
    <div class="try">
      <form noValidate class="form" onSubmit={(event) => event.preventDefault()}>
        {manager.source.type !== "MICROBLOG" && (
          <Field label={w.tryIt.postTitle}>
            {(attributes) => <input {...attributes} dir="auto" maxLength={300} value={title.value} onInput={(event) => { title.value = event.currentTarget.value; }} />}
          </Field>
        )}
        <Field label={w.tryIt.post} hint={w.tryIt.hint}>
          {(attributes) => <textarea {...attributes} rows={7} dir="auto" maxLength={40_000} value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }} />}
        </Field>
        <div class="actions">
          <Act class="primary" run={judge} onError={onError} disabled={title.value.trim() === "" && text.value.trim() === ""}>{w.tryIt.judge}</Act>
          <Act run={async () => { begin(); recent.value = await previewRecent(manager, undefined, {}); }} onError={onError}>{w.tryIt.recent}</Act>
        </div>
        {manager.instructions.focus && <p class="hint">{w.preview.byWords}</p>}
      </form>
      <section class="try-answer" aria-label={w.tryIt.answer} aria-live="polite">
        {failed.value !== undefined && <Failed error={failed.value} />}
        {!judged && !recent.value && failed.value === undefined && <Empty title={w.tryIt.none} why={w.tryIt.noneWhy} />}
        {judged && (
          <div class="card">
            <p class="verdict-line"><Verdict result={judged.result} /> {w.reason.means[judged.result.reason]}</p>
            {judged.post.title && <p><strong><Marked text={judged.post.title} field="title" match={judged.result.match} /></strong></p>}
            {judged.post.text && <div class="post-text"><Marked text={judged.post.text} field="text" match={judged.result.match} /></div>}
            <Score match={judged.result.match} threshold={threshold} value={judged.result.value} />
          </div>
        )}
        {recent.value && <PreviewList list={recent.value} threshold={threshold} />}
      </section>
    </div>
  );
}

/** A post as the Manager's feeds would bring it. */
function madeUp(manager: Manager, title: string, text: string): Post {
  const platform = (manager.instructions?.feeds?.[0] ?? "console:").split(":", 1)[0] ?? "console";
  const nowhere = "https://example.com/";
  const post: Post = {
    type: ({ FORUM: "FORUM_LINK", MICROBLOG: "MICROBLOG_TWEET", NETWORK: "NETWORK_POST" } as const)[manager.source.type],
    time: timestamp(Date.now()),
    id: `${platform}:pasted`, url: nowhere, user: { id: "somebody", name: "somebody", url: nowhere },
  };
  if (manager.source.type === "FORUM") {
    return { ...post, title, text, subforum: { id: "somewhere", name: "somewhere", url: nowhere } };
  }
  return manager.source.type === "NETWORK" && title !== "" ? { ...post, title, text } : { ...post, text };
}
