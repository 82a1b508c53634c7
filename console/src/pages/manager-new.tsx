// A new Manager: asked for, compiled before one's eyes, previewed, and only then turned on.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { FOCUSES, id, SOURCES, type Focus, type Manager, type Notice, type Sensitivity, type SourceType } from "../api/types";
import { tell } from "../parts/announce";
import { Act, Field, Loaded, Page, Skeleton, State, Words } from "../parts/basics";
import { Failed, fieldError, tellError } from "../parts/errors";
import { pageOf, useConnections } from "../parts/names";
import { NoticeChoice } from "../parts/notices";
import { PreviewList, previewRecent } from "../parts/preview";
import { useQuery } from "../parts/query";
import { SensitivityField } from "../parts/sensitivity";
import { Understood } from "../parts/understood";
import { go, href, route, setQuery } from "../router";
import { w } from "../words/en";

const WATCH_MS = 1_500;

export function NewManager({ namespace }: { namespace: string }) {
  const made = route.value.query.get("manager");
  return (
    <Page title={w.newManager.title} lead={w.newManager.lead} back={{ href: href(`n/${namespace}/managers`), text: w.managers.title }}>
      {made === null ? <Form namespace={namespace} /> : <Compiling name={`namespaces/${namespace}/managers/${encodeURIComponent(made)}`} />}
    </Page>
  );
}

function Form({ namespace }: { namespace: string }) {
  const connections = useConnections(`namespaces/${namespace}`);
  const urls = useSignal<string[]>([]);
  const focus = useSignal<Focus>("SALES");
  const names = useSignal<string[]>([]);
  const sensitivity = useSignal<Sensitivity>("BALANCED");
  const nickname = useSignal("");
  const source = useSignal<SourceType>("FORUM");
  const chosen = useSignal<Notice[]>([]);
  const failed = useSignal<unknown>(undefined);
  const busy = useSignal(false);

  const create = async () => {
    busy.value = true;
    failed.value = undefined;
    try {
      const manager = await api.createManager(`namespaces/${namespace}`, {
        nickname: nickname.value, type: "FEED_MANAGER", enable: false,
        source: { type: source.value },
        input: { type: "STRUCTURED", urls: urls.value, focus: { type: focus.value, ...(names.value.length > 0 ? { names: names.value } : {}) }, sensitivity: sensitivity.value },
        notices: chosen.value,
      });
      setQuery({ manager: id(manager.name) });
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  const wrong = (field: string) => fieldError(failed.value, field);
  const unshown = failed.value !== undefined && !["input.urls", "nickname", "input.focus.names", "input.sensitivity", "notices", "source"].some((field) => wrong(field));

  return (
    <form noValidate class="form card" onSubmit={(event) => { event.preventDefault(); void create(); }}>
      <Field label={w.newManager.urls} hint={w.newManager.urlsHint} error={wrong("input.urls")}>
        {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.newManager.urls} values={urls.value} max={20} placeholder="https://…" onChange={(values) => { urls.value = values; }} />}
      </Field>
      <fieldset>
        <legend>{w.newManager.focus}</legend>
        <div class="options">
          {FOCUSES.map((one) => (
            <label class="option" key={one}>
              <input type="radio" name="focus" checked={focus.value === one} onChange={() => { focus.value = one; }} />
              <span><strong>{w.focus[one]}</strong><span class="faint">{w.focusMeans[one]}</span></span>
            </label>
          ))}
        </div>
      </fieldset>
      <Field label={w.newManager.names} hint={w.newManager.namesHint} error={wrong("input.focus.names")}>
        {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.newManager.names} values={names.value} max={50} maxLength={100} onChange={(values) => { names.value = values; }} />}
      </Field>
      <SensitivityField value={sensitivity.value} error={wrong("input.sensitivity")} onChange={(value) => { sensitivity.value = value; }} />
      <div class="columns">
        <Field label={w.nickname} hint={w.newManager.nicknameHint} error={wrong("nickname")}>
          {(attributes) => <input {...attributes} maxLength={120} dir="auto" value={nickname.value} onInput={(event) => { nickname.value = event.currentTarget.value; }} />}
        </Field>
        <Field label={w.newManager.source} error={wrong("source")}>
          {(attributes) => (
            <select {...attributes} value={source.value} onChange={(event) => { source.value = event.currentTarget.value as SourceType; }}>
              {SOURCES.map((one) => <option key={one} value={one}>{w.sources[one]}</option>)}
            </select>
          )}
        </Field>
      </div>
      <fieldset>
        <legend>{w.newManager.connections}</legend>
        <Loaded query={connections} rows={1}>{(list) => <NoticeChoice connections={list} chosen={chosen.value} error={failed.value} onChange={(notices) => { chosen.value = notices; }} />}</Loaded>
        {wrong("notices") && <p class="hint bad">{wrong("notices")}</p>}
        <p class="hint">{w.newManager.connectionsHint}</p>
      </fieldset>
      {unshown && <Failed error={failed.value} />}
      <div class="actions">
        <button type="submit" class="primary" disabled={busy.value || urls.value.length === 0 || nickname.value.trim() === ""}>{busy.value ? w.newManager.creating : w.newManager.create}</button>
        <span class="faint small">{w.newManager.nothingYet}</span>
      </div>
    </form>
  );
}

function Compiling({ name }: { name: string }) {
  const manager = useQuery(name, (read) => api.manager(name, read), WATCH_MS);
  return (
    <Loaded query={manager}>
      {(data) => (
        <>
          <ol class="steps">
            <li><State tone="good">{w.newManager.asked}</State></li>
            <li>
              {data.state === "PENDING_APPLY" && <State tone="busy">{w.newManager.compiling}</State>}
              {data.state === "APPLIED" && <State tone="good">{w.newManager.compiled}</State>}
              {data.state === "APPLY_FAILED" && <State tone="bad">{w.newManager.failed}</State>}
            </li>
            <li><State tone={data.enable ? "good" : "idle"}>{data.enable ? w.newManager.isOn : w.newManager.isOff}</State></li>
          </ol>
          {data.state === "PENDING_APPLY" && <><p role="status" class="faint">{w.newManager.reading((data.input?.urls ?? []).length)}</p><Skeleton rows={5} /></>}
          {data.state === "APPLY_FAILED" && <FailedCompile manager={data} reload={manager.reload} />}
          {data.state === "APPLIED" && <Ready manager={data} />}
        </>
      )}
    </Loaded>
  );
}

function FailedCompile({ manager, reload }: { manager: Manager; reload: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <p><strong>{w.manager.applyErrors[manager.applyError?.code ?? ""] ?? manager.applyError?.message}</strong></p>
      {manager.applyError && <p class="faint">{manager.applyError.message}</p>}
      <div class="actions">
        <Act run={async () => { await api.applyManager(manager.name); reload(); }} onError={(error) => tellError(error)}>{w.manager.applyAgain}</Act>
        <a class="button" href={pageOf(manager.name, "settings")}>{w.newManager.changeUrls}</a>
      </div>
    </div>
  );
}

function Ready({ manager }: { manager: Manager }) {
  const previewed = useQuery(`${manager.name}:preview`, (read) => previewRecent(manager, undefined, read), null);
  const turnOn = async () => {
    await api.updateManager(manager.name, { enable: true });
    tell(w.manager.turnedOn);
    go(pageOf(manager.name));
  };
  return (
    <>
      <section class="block">
        <h2>{w.newManager.understood}</h2>
        {manager.instructions && <Understood instructions={manager.instructions} />}
      </section>
      <section class="block">
        <h2>{w.newManager.preview}</h2>
        <Loaded query={previewed}>{(data) => <PreviewList list={data} threshold={manager.instructions?.threshold} />}</Loaded>
      </section>
      <div class="actions sticky">
        {!manager.enable && <Act class="primary" run={turnOn} onError={(error) => tellError(error)}>{w.newManager.turnOn}</Act>}
        <a class="button" href={pageOf(manager.name, "looks")}>{w.newManager.refine}</a>
      </div>
    </>
  );
}
