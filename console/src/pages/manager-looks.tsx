// What a Manager looks for, and taking it over: edits show what they keep, lose and gain before they are saved.
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Instructions, Manager } from "../api/types";
import { tell } from "../parts/announce";
import { Empty, Field, Foreign, Words } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { Failed } from "../parts/errors";
import { shownScore } from "../parts/marked";
import { pageOf } from "../parts/names";
import { Comparison, previewRecent, type Previewed } from "../parts/preview";
import { Understood } from "../parts/understood";
import { mayWrite } from "../session";
import { w } from "../words/en";

const PAUSE_MS = 700;

export function ManagerLooks({ manager, put }: { manager: Manager; put: (manager: Manager) => void }) {
  const editing = useSignal(false);
  const asking = useSignal(false);
  const instructions = manager.instructions;
  if (!instructions) {
    return <Empty title={w.looks.none} why={manager.state === "APPLY_FAILED" ? w.looks.noneFailed : w.looks.noneYet} />;
  }
  if (editing.value) {
    return <Editor manager={manager} instructions={instructions} put={put} onEnd={() => { editing.value = false; }} />;
  }
  const mutes = manager.mutes ?? [];
  return (
    <>
      <Understood instructions={instructions} />
      <p>{mutes.length > 0 ? w.looks.muted(mutes.length) : w.looks.noMutes} <a href={pageOf(manager.name, "settings")}>{w.manager.tabs.settings}</a></p>
      {mayWrite.value && (
        <div class="actions">
          {manager.mode === "AUTOMATIC"
            ? <button type="button" onClick={() => { asking.value = true; }}>{w.looks.takeOver}</button>
            : <button type="button" onClick={() => { editing.value = true; }}>{w.looks.edit}</button>}
        </div>
      )}
      {asking.value && (
        <Confirm
          title={w.looks.takeOver} text={<p>{w.looks.takeOverMeans}</p>} action={w.looks.takeOver}
          run={async () => { editing.value = true; }} onClose={() => { asking.value = false; }}
        />
      )}
    </>
  );
}

function Editor({ manager, instructions, put, onEnd }: { manager: Manager; instructions: Instructions; put: (manager: Manager) => void; onEnd: () => void }) {
  const draft = useSignal<Instructions>(instructions);
  const before = useSignal<Previewed | null>(null);
  const after = useSignal<Previewed | null>(null);
  const failed = useSignal<unknown>(undefined);
  const previewFailed = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const change = (to: Partial<Instructions>) => { draft.value = { ...draft.value, ...to }; };

  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const read = { signal: stop.signal };
      // Both at once, of the same posts as nearly as can be.
      Promise.all([before.value ?? previewRecent(manager, undefined, read), previewRecent(manager, draft.value, read)]).then(
        ([old, fresh]) => { before.value = old; after.value = fresh; previewFailed.value = undefined; },
        (error: unknown) => { if (!stop.signal.aborted) { previewFailed.value = error; } },
      );
    }, PAUSE_MS);
    return () => { clearTimeout(timer); stop.abort(); };
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
  const { focus, threshold = 0, include = [], require = [], exclude = [], names = [] } = draft.value;

  return (
    <div class="editor">
      <form noValidate class="form" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        {manager.mode === "AUTOMATIC" && <p class="notice">{w.looks.takingOver}</p>}
        <Field label={`${w.looks.threshold}: ${shownScore(threshold)}`} hint={focus ? w.looks.calibrated : w.looks.summed}>
          {(attributes) => (focus
            ? <input {...attributes} type="range" min="0" max="1" step="0.01" value={threshold} onInput={(event) => change({ threshold: Number(event.currentTarget.value) })} />
            : <input {...attributes} type="number" step="any" value={threshold} onInput={(event) => { const value = event.currentTarget.valueAsNumber; if (Number.isFinite(value)) { change({ threshold: value }); } }} />)}
        </Field>
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
        <Field label={w.looks.names} hint={w.looks.namesHint}>
          {(attributes) => (
            <Words
              id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.looks.names} maxLength={100} values={names.map((name) => name.text)}
              onChange={(words) => change({ names: words.map((text) => names.find((name) => name.text === text) ?? { text, kind: "WATCHED" as const, caseSensitive: false }) })}
            />
          )}
        </Field>
        {failed.value !== undefined && <Failed error={failed.value} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={busy.value || draft.value === instructions}>{w.looks.save}</button>
          <button type="button" onClick={onEnd}>{w.cancel}</button>
        </div>
      </form>
      <section class="editor-preview" aria-label={w.looks.effect}>
        <h2>{w.looks.effect}</h2>
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
