// Instructions kept by hand: every edit shows what it keeps, loses and gains of recent posts before it is saved.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Instructions, Manager, WatchedName } from "../api/types";
import { tell } from "../parts/announce";
import { Field, Foreign, Words } from "../parts/basics";
import { Failed } from "../parts/errors";
import { shownScore } from "../parts/marked";
import { Comparison, previewRecent, type Judged } from "../parts/preview";
import { SellsFields } from "../parts/sells";
import { w } from "../words/en";

const PAUSE_MS = 700;
const KINDS: WatchedName["kind"][] = ["OWN", "WATCHED"];

/** Ends when it is saved or given up. */
export function Editor({ manager, instructions, put, onEnd }: { manager: Manager; instructions: Instructions; put: (manager: Manager) => void; onEnd: () => void }) {
  const draft = useSignal<Instructions>(instructions);
  const before = useSignal<Judged[] | null>(null);
  const after = useSignal<Judged[] | null>(null);
  const failed = useSignal<unknown>(undefined);
  const previewFailed = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const change = (to: Partial<Instructions>) => { draft.value = { ...draft.value, ...to }; };

  // The gateway computes one preview of an account at a time, so they are requested one after the other. One that is
  // under way ends before the next begins, even if its draft has changed since.
  const previews = useRef<Promise<void>>(Promise.resolve());
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  useEffect(() => {
    let isOutdated = false;
    const read = { signal: leaving.current.signal };
    const preview = async () => {
      if (isOutdated) {
        return;
      }
      try {
        before.value ??= await previewRecent(manager, undefined, read);
        const fresh = await previewRecent(manager, draft.value, read);
        if (!isOutdated) {
          after.value = fresh;
          previewFailed.value = undefined;
        }
      } catch (error) {
        if (!isOutdated) {
          previewFailed.value = error;
        }
      }
    };
    const timer = setTimeout(() => { previews.current = previews.current.then(preview); }, PAUSE_MS);
    return () => { clearTimeout(timer); isOutdated = true; };
  }, [draft.value]);

  const save = async () => {
    busy.value = true;
    failed.value = undefined;
    try {
      put(await api.updateManager(manager.name, { instructions: draft.value }, "instructions"));
      tell(w.looks.saved);
      onEnd();
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  const { focus, threshold = 0, include = [], require = [], exclude = [], names = [], feeds = [], sells = {}, brief = "" } = draft.value;

  return (
    <div class="editor">
      <form noValidate class="form" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        {manager.mode === "AUTOMATIC" && <p class="notice">{w.looks.takingOver}</p>}
        <Field label={`${w.looks.threshold}: ${shownScore(threshold)}`} hint={focus ? w.looks.calibrated : w.looks.summed}>
          {(attributes) => (focus
            ? <input {...attributes} type="range" min="0" max="1" step="0.01" value={threshold} onInput={(event) => change({ threshold: Number(event.currentTarget.value) })} />
            : <input {...attributes} type="number" step="any" value={threshold} onInput={(event) => { const value = event.currentTarget.valueAsNumber; if (Number.isFinite(value)) { change({ threshold: value }); } }} />)}
        </Field>
        <SellsFields sells={sells} onChange={(sells) => change({ sells })} />
        <Terms include={include} onChange={(terms) => change({ include: terms })} />
        <fieldset>
          <legend>{w.looks.must}</legend>
          {require.map((group, at) => (
            <div class="group" key={at}>
              <span class="faint">{w.looks.mustMention}</span>
              <Words label={w.looks.groupLabel(at + 1)} maxLength={100} values={group} onChange={(words) => change({ require: words.length === 0 ? require.filter((_, other) => other !== at) : require.map((old, other) => (other === at ? words : old)) })} />
            </div>
          ))}
          {require.length < 20 && <Words label={w.looks.newGroup} placeholder={w.looks.newGroup} maxLength={100} values={[]} onChange={(words) => change({ require: [...require, words] })} />}
        </fieldset>
        <Field label={w.looks.exclude} hint={w.looks.excludeHint}>
          {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.looks.exclude} maxLength={100} values={exclude} onChange={(words) => change({ exclude: words })} />}
        </Field>
        <Names names={names} onChange={(changed) => change({ names: changed })} />
        <Field label={w.looks.feeds} hint={w.looks.feedsHint}>
          {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.looks.feeds} placeholder="hackernews:newest" max={200} values={feeds} onChange={(words) => change({ feeds: words })} />}
        </Field>
        <Field label={w.looks.brief} hint={w.looks.briefHint}>
          {(attributes) => <textarea {...attributes} rows={3} dir="auto" maxLength={2000} value={brief} onInput={(event) => change({ brief: event.currentTarget.value })} />}
        </Field>
        {failed.value !== undefined && <Failed error={failed.value} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={busy.value || draft.value === instructions}>{w.looks.save}</button>
          <button type="button" onClick={onEnd}>{w.cancel}</button>
        </div>
      </form>
      <section class="editor-preview" aria-label={w.looks.effect}>
        <h2>{w.looks.effect}</h2>
        {focus && <p class="hint">{w.preview.byWords}</p>}
        {previewFailed.value !== undefined && <Failed error={previewFailed.value} />}
        {before.value && after.value ? <Comparison before={before.value} after={after.value} threshold={threshold} /> : previewFailed.value === undefined && <p class="faint" role="status">{w.looks.counting}</p>}
      </section>
    </div>
  );
}

function Terms({ include, onChange }: { include: { text: string; weight: number }[]; onChange: (include: { text: string; weight: number }[]) => void }) {
  const sorted = [...include].sort((a, b) => b.weight - a.weight || (a.text < b.text ? -1 : 1));
  return (
    <fieldset>
      <legend>{w.looks.terms}</legend>
      <Words label={w.looks.addTerm} placeholder={w.looks.addTerm} maxLength={100} values={[]} onChange={(words) => onChange([...include, ...words.filter((text) => !include.some((one) => one.text === text)).map((text) => ({ text, weight: 1 }))])} />
      <ul class="terms">
        {sorted.map((term) => (
          <li key={term.text}>
            <Foreign>{term.text}</Foreign>
            <input
              type="number" step="any" aria-label={w.looks.weightOf(term.text)} value={term.weight}
              onChange={(event) => { const weight = event.currentTarget.valueAsNumber; if (Number.isFinite(weight)) { onChange(include.map((one) => (one.text === term.text ? { ...one, weight } : one))); } }}
            />
            <button type="button" class="icon" aria-label={w.remove(term.text)} onClick={() => onChange(include.filter((one) => one.text !== term.text))}>×</button>
          </li>
        ))}
      </ul>
    </fieldset>
  );
}

/** Each name opens to whose it is, what else it is called, and what must stand beside it. */
function Names({ names, onChange }: { names: WatchedName[]; onChange: (names: WatchedName[]) => void }) {
  const edit = (at: number, to: Partial<WatchedName>) => onChange(names.map((one, other) => (other === at ? { ...one, ...to } : one)));
  const add = (words: string[]) => onChange([...names, ...words.filter((text) => !names.some((one) => one.text === text)).map((text) => ({ text, kind: "WATCHED" as const, caseSensitive: false }))]);
  return (
    <fieldset>
      <legend>{w.looks.names}</legend>
      <p class="hint">{w.looks.namesHint}</p>
      <Words label={w.looks.addName} placeholder={w.looks.addName} maxLength={100} values={[]} onChange={add} />
      <ul class="names">
        {names.map((name, at) => <Name key={name.text} name={name} edit={(to) => edit(at, to)} remove={() => onChange(names.filter((_, other) => other !== at))} />)}
      </ul>
    </fieldset>
  );
}

function Name({ name, edit, remove }: { name: WatchedName; edit: (to: Partial<WatchedName>) => void; remove: () => void }) {
  const open = useSignal(false);
  const words = (field: "aliases" | "context", hint: string) => (
    <Field label={w.looks[field]} hint={hint}>
      {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.looks[field]} maxLength={100} values={name[field] ?? []} onChange={(values) => edit({ [field]: values })} />}
    </Field>
  );
  return (
    <li>
      <details onToggle={(event) => { open.value = event.currentTarget.open; }}>
        <summary><Foreign>{name.text}</Foreign> <span class="faint small">{w.looks.nameIs(name.kind, (name.aliases ?? []).length)}</span></summary>
        {open.value && (
          <div class="form">
            <Field label={w.looks.whose}>
              {(attributes) => (
                <select {...attributes} value={name.kind} onChange={(event) => edit({ kind: event.currentTarget.value as WatchedName["kind"] })}>
                  {KINDS.map((one) => <option key={one} value={one}>{w.looks.kindMeans[one]}</option>)}
                </select>
              )}
            </Field>
            {words("aliases", w.looks.aliasesHint)}
            {words("context", w.looks.contextHint)}
            <label class="choice"><input type="checkbox" checked={name.caseSensitive ?? false} onChange={(event) => edit({ caseSensitive: event.currentTarget.checked })} /> {w.looks.caseSensitive}</label>
            <button type="button" class="danger" onClick={remove}>{w.remove(name.text)}</button>
          </div>
        )}
      </details>
    </li>
  );
}
