// What a customer sets of a Manager: each part is saved by itself, and waits for its answer.
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { FOCUSES, parent, timestamp, type Duplicates, type Focus, type Kind, type Manager, type Mute, type Notice, type Sells, type Sensitivity } from "../api/types";
import { tell } from "../parts/announce";
import { Field, Foreign, Loaded, Words } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { Failed, fieldError, tellError } from "../parts/errors";
import { setMutes } from "../parts/labels";
import { useConnections, useNamespaces } from "../parts/names";
import { NoticeChoice } from "../parts/notices";
import { forgetQueries, useQuery } from "../parts/query";
import { SellsFields } from "../parts/sells";
import { SensitivityField } from "../parts/sensitivity";
import { Time } from "../parts/time";
import { go, href } from "../router";
import { mayWrite } from "../session";
import { w } from "../words/en";

type Put = (manager: Manager) => void;

export function ManagerSettings({ manager, put }: { manager: Manager; put: Put }) {
  return (
    <div class="settings">
      {!mayWrite.value && <Facts manager={manager} />}
      {mayWrite.value && <Naming manager={manager} put={put} />}
      {mayWrite.value && manager.input && <Input manager={manager} put={put} />}
      <Mutes title={w.settings.mutes} hint={w.settings.mutesHint} target={manager.name} mutes={manager.mutes ?? []} changed={(mutes) => put({ ...manager, mutes })} />
      <NamespaceMutes manager={manager} />
      {mayWrite.value && <Screen manager={manager} put={put} />}
      {mayWrite.value && <Notices manager={manager} put={put} />}
      {mayWrite.value && <Delete manager={manager} />}
    </div>
  );
}

function Facts({ manager }: { manager: Manager }) {
  return (
    <dl class="facts card">
      <dt>{w.settings.urls}</dt><dd>{(manager.input?.urls ?? []).map((url) => <p key={url}><Foreign>{url}</Foreign></p>)}</dd>
      <dt>{w.settings.languages}</dt><dd>{(manager.languages ?? []).join(", ") || w.settings.anyLanguage}</dd>
      <dt>{w.settings.maxScans}</dt><dd>{manager.maxScansPerDay ?? w.settings.noMax}</dd>
    </dl>
  );
}

/** A part with a button of its own. */
function Part({ title, hint, changed, save, children, failed }: { title: string; hint?: string; changed: boolean; save: () => Promise<void>; children: ComponentChildren; failed: { value: unknown } }) {
  const busy = useSignal(false);
  const submit = async () => {
    busy.value = true;
    failed.value = undefined;
    try {
      await save();
      tell(w.saved);
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  return (
    <form noValidate class="part card" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
      <div class="part-words"><h2>{title}</h2>{hint && <p class="faint">{hint}</p>}</div>
      <div class="part-fields">
        {children}
        {failed.value !== undefined && <Failed error={failed.value} />}
        <div class="actions"><button type="submit" class={changed ? "primary" : ""} disabled={!changed || busy.value}>{w.save}</button></div>
      </div>
    </form>
  );
}

function Naming({ manager, put }: { manager: Manager; put: Put }) {
  const nickname = useSignal(manager.nickname);
  const failed = useSignal<unknown>(undefined);
  return (
    <Part title={w.settings.general} failed={failed} changed={nickname.value.trim() !== manager.nickname && nickname.value.trim() !== ""} save={async () => put(await api.updateManager(manager.name, { nickname: nickname.value }))}>
      <Field label={w.nickname} error={fieldError(failed.value, "nickname")}>
        {(attributes) => <input {...attributes} dir="auto" maxLength={120} value={nickname.value} onInput={(event) => { nickname.value = event.currentTarget.value; }} />}
      </Field>
    </Part>
  );
}

function Input({ manager, put }: { manager: Manager; put: Put }) {
  const input = manager.input;
  const urls = useSignal(input?.urls ?? []);
  const focus = useSignal<Focus>(input?.focus.type ?? "SALES");
  const names = useSignal(input?.focus.names ?? []);
  const sensitivity = useSignal<Sensitivity>(input?.sensitivity ?? "BALANCED");
  const sells = useSignal<Sells>(input?.sells ?? {});
  const failed = useSignal<unknown>(undefined);
  const changed = JSON.stringify([urls.value, focus.value, names.value, sensitivity.value, sells.value]) !== JSON.stringify([input?.urls ?? [], input?.focus.type, input?.focus.names ?? [], input?.sensitivity, input?.sells ?? {}]);
  const save = async () => {
    const body = { input: { type: "STRUCTURED", urls: urls.value, focus: { type: focus.value, ...(names.value.length > 0 ? { names: names.value } : {}) }, sensitivity: sensitivity.value, sells: sells.value } };
    put(await api.updateManager(manager.name, body, "input"));
  };
  return (
    <Part title={w.settings.input} hint={manager.mode === "MANUAL" ? w.settings.inputTakesBack : w.settings.inputMeans} failed={failed} changed={changed && urls.value.length > 0} save={save}>
      <Field label={w.settings.urls} error={fieldError(failed.value, "input.urls")}>
        {(attributes) => <Words id={attributes.id} label={w.settings.urls} describedBy={attributes["aria-describedby"]} values={urls.value} max={20} placeholder="https://…" onChange={(values) => { urls.value = values; }} />}
      </Field>
      <Field label={w.newManager.focus}>
        {(attributes) => (
          <select {...attributes} value={focus.value} onChange={(event) => { focus.value = event.currentTarget.value as Focus; }}>
            {FOCUSES.map((one) => <option key={one} value={one}>{w.focus[one]}</option>)}
          </select>
        )}
      </Field>
      <Field label={w.newManager.names} hint={w.newManager.namesHint} error={fieldError(failed.value, "input.focus.names")}>
        {(attributes) => <Words id={attributes.id} label={w.newManager.names} describedBy={attributes["aria-describedby"]} values={names.value} max={50} maxLength={100} onChange={(values) => { names.value = values; }} />}
      </Field>
      <SensitivityField value={sensitivity.value} error={fieldError(failed.value, "input.sensitivity")} onChange={(value) => { sensitivity.value = value; }} />
      <SellsFields sells={sells.value} hint={w.settings.sellsHint} onChange={(value) => { sells.value = value; }} />
    </Part>
  );
}

function NamespaceMutes({ manager }: { manager: Manager }) {
  const target = parent(manager.name);
  const namespace = useQuery(target, (read) => api.namespace(target, read), null);
  const namespaces = useNamespaces();
  return (
    <Loaded query={namespace} rows={1}>
      {(data) => (
        <Mutes
          title={w.settings.namespaceMutes} hint={w.settings.namespaceMutesHint} target={target} mutes={data.mutes ?? []}
          changed={(mutes) => { namespace.set({ ...data, mutes }); namespaces.reload(); }}
        />
      )}
    </Loaded>
  );
}

const MUTE_TYPES: Mute["type"][] = ["AUTHOR", "SUBFORUM", "SITE", "TERM"];

function Mutes({ title, hint, target, mutes, changed }: { title: string; hint: string; target: string; mutes: Mute[]; changed: (mutes: Mute[]) => void }) {
  const type = useSignal<Mute["type"]>("TERM");
  const value = useSignal("");
  const until = useSignal("");
  const failed = useSignal<unknown>(undefined);
  const same = (a: Mute, b: Mute) => a.type === b.type && a.value === b.value;
  const edit = async (change: (mutes: Mute[]) => Mute[]) => changed(await setMutes(target, change));
  const add = async () => {
    failed.value = undefined;
    const mute: Mute = { type: type.value, value: value.value.trim(), ...(until.value ? { expireTime: timestamp(Date.parse(`${until.value}T23:59:59`)) } : {}) };
    try {
      await edit((list) => [...list.filter((one) => !same(one, mute)), mute]);
      value.value = "";
      tell(w.mute.added);
    } catch (error) {
      failed.value = error;
    }
  };
  const remove = async (mute: Mute) => {
    changed(mutes.filter((one) => !same(one, mute)));
    try {
      await edit((list) => list.filter((one) => !same(one, mute)));
      tell(w.mute.removed, () => void edit((list) => [...list, mute]).catch((error: unknown) => tellError(error)));
    } catch (error) {
      changed(mutes);
      tellError(error);
    }
  };
  return (
    <form noValidate class="part card" onSubmit={(event) => { event.preventDefault(); void add(); }}>
      <div class="part-words"><h2>{title}</h2><p class="faint">{hint}</p></div>
      <div class="part-fields">
      {mutes.length === 0 ? <p class="faint">{w.settings.noMutes}</p> : (
        <ul class="mutes">
          {mutes.map((mute) => (
            <li key={mute.type + mute.value}>
              <span class="tag">{w.mute.types[mute.type]}</span> <Foreign>{mute.value}</Foreign>
              {mute.expireTime && <span class="faint small">{w.mute.until} <Time iso={mute.expireTime} focusable /></span>}
              {mayWrite.value && <button type="button" class="icon" aria-label={w.remove(mute.value)} onClick={() => void remove(mute)}>×</button>}
            </li>
          ))}
        </ul>
      )}
      {mayWrite.value && mutes.length < 200 && (
        <div class="inline-form">
          <select aria-label={w.mute.what} value={type.value} onChange={(event) => { type.value = event.currentTarget.value as Mute["type"]; }}>
            {MUTE_TYPES.map((one) => <option key={one} value={one}>{w.mute.types[one]}</option>)}
          </select>
          <input aria-label={w.mute.value} placeholder={w.mute.hints[type.value]} dir="auto" maxLength={type.value === "TERM" ? 100 : 200} value={value.value} onInput={(event) => { value.value = event.currentTarget.value; }} />
          <label class="date"><span class="faint small">{w.mute.until}</span> <input type="date" value={until.value} onInput={(event) => { until.value = event.currentTarget.value; }} /></label>
          <button type="submit" disabled={value.value.trim() === ""}>{w.mute.mute}</button>
        </div>
      )}
      {failed.value !== undefined && <Failed error={failed.value} />}
      </div>
    </form>
  );
}

const KINDS: Kind[] = ["POST", "COMMENT"];

/** What is let through, whatever matches. */
function Screen({ manager, put }: { manager: Manager; put: Put }) {
  const languages = useSignal(manager.languages ?? []);
  const max = useSignal(manager.maxScansPerDay?.toString() ?? "");
  const kinds = useSignal<Kind[]>(manager.kinds ?? ["POST"]);
  const duplicates = useSignal<Duplicates>(manager.duplicates ?? "KEEP");
  const failed = useSignal<unknown>(undefined);
  const was = [manager.languages ?? [], manager.maxScansPerDay?.toString() ?? "", manager.kinds ?? ["POST"], manager.duplicates ?? "KEEP"];
  const changed = JSON.stringify(was) !== JSON.stringify([languages.value, max.value, kinds.value, duplicates.value]);
  const save = async () => {
    const differs = <T,>(a: T, b: T) => JSON.stringify(a) !== JSON.stringify(b);
    const change: Record<string, unknown> = {};
    if (differs(languages.value, was[0])) {
      change["languages"] = languages.value;
    }
    if (max.value !== was[1]) {
      change["maxScansPerDay"] = max.value.trim() === "" ? null : Number(max.value);
    }
    if (differs(kinds.value, was[2])) {
      change["kinds"] = kinds.value;
    }
    if (duplicates.value !== was[3]) {
      change["duplicates"] = duplicates.value;
    }
    put(await api.updateManager(manager.name, change));
  };
  return (
    <Part title={w.settings.screen} hint={w.settings.screenHint} failed={failed} changed={changed && kinds.value.length > 0} save={save}>
      <Field label={w.settings.languages} hint={w.settings.languagesHint} error={fieldError(failed.value, "languages")}>
        {(attributes) => <Words id={attributes.id} label={w.settings.languages} describedBy={attributes["aria-describedby"]} values={languages.value} max={20} maxLength={35} placeholder="en" onChange={(values) => { languages.value = values; }} />}
      </Field>
      <fieldset>
        <legend>{w.settings.kinds}</legend>
        {KINDS.map((one) => (
          <label class="choice" key={one}>
            <input type="checkbox" checked={kinds.value.includes(one)} onChange={() => { kinds.value = KINDS.filter((kind) => (kind === one) !== kinds.value.includes(kind)); }} /> {w.settings.kindWords[one]}
          </label>
        ))}
      </fieldset>
      <Field label={w.settings.duplicates} hint={w.settings.duplicatesHint}>
        {(attributes) => (
          <select {...attributes} value={duplicates.value} onChange={(event) => { duplicates.value = event.currentTarget.value as Duplicates; }}>
            <option value="KEEP">{w.settings.keep}</option><option value="COLLAPSE">{w.settings.collapse}</option>
          </select>
        )}
      </Field>
      <Field label={w.settings.maxScans} hint={w.settings.maxScansHint} error={fieldError(failed.value, "maxScansPerDay")}>
        {(attributes) => <input {...attributes} type="number" min="1" max="100000" step="1" value={max.value} placeholder={w.settings.noMax} onInput={(event) => { max.value = event.currentTarget.value; }} />}
      </Field>
    </Part>
  );
}

function Notices({ manager, put }: { manager: Manager; put: Put }) {
  const connections = useConnections(parent(manager.name));
  const chosen = useSignal(manager.notices);
  const failed = useSignal<unknown>(undefined);
  const changed = text(manager.notices) !== text(chosen.value);
  const save = async () => put(await api.updateManager(manager.name, { notices: chosen.value }));
  return (
    <Part title={w.settings.connections} hint={w.settings.connectionsHint} failed={failed} changed={changed} save={save}>
      <Loaded query={connections} rows={1}>{(list) => <NoticeChoice connections={list} chosen={chosen.value} error={failed.value} onChange={(notices) => { chosen.value = notices; }} />}</Loaded>
    </Part>
  );
}

/** Equal for the same notices in any order. */
function text(notices: Notice[]): string {
  return notices.map((one) => `${one.connection} ${one.filter ?? ""}`).sort().join("\n");
}

function Delete({ manager }: { manager: Manager }) {
  const asking = useSignal(false);
  const namespace = manager.name.split("/")[1] ?? "";
  return (
    <div class="card part">
      <div class="part-words"><h2>{w.delete}</h2><p class="faint">{w.settings.deleteMeans}</p></div>
      <div class="actions"><button type="button" class="danger" onClick={() => { asking.value = true; }}>{w.settings.delete}</button></div>
      {asking.value && (
        <Confirm
          title={w.settings.delete} text={<p>{w.settings.deleteMeans}</p>} word={manager.nickname} action={w.delete} danger onClose={() => { asking.value = false; }}
          run={async () => { await api.deleteManager(manager.name); forgetQueries(); tell(w.deleted); go(href(`n/${namespace}/managers`)); }}
        />
      )}
    </div>
  );
}
