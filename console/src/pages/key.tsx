// One field for the key; and once there is one, what it may do.
import { useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError } from "../api/client";
import { id } from "../api/types";
import { Act, Page } from "../parts/basics";
import { errorText } from "../parts/errors";
import { useNamespaces } from "../parts/names";
import { Brand } from "../parts/shell";
import { Time, moment, number } from "../parts/time";
import { href } from "../router";
import { caller, end, ended, signIn } from "../session";
import { w } from "../words/en";

const FORM = /^esk_[0-9a-z]{26}_[0-9A-Za-z_-]{43}$/;

export function SignIn() {
  const input = useId();
  const typed = useSignal("");
  const visible = useSignal(false);
  const problem = useSignal<string | null>(null);
  const busy = useSignal(false);

  const enter = async () => {
    const candidate = typed.value.trim();
    if (!FORM.test(candidate)) {
      problem.value = candidate === "" ? w.key.missing : w.key.malformed;
      return;
    }
    busy.value = true;
    problem.value = null;
    try {
      await signIn(candidate);
    } catch (error) {
      problem.value = error instanceof ApiError && error.status === 401 ? w.key.refused : errorText(error);
    } finally {
      busy.value = false;
    }
  };

  return (
    <main class="sign-in">
      <div class="card">
        <Brand />
        <h1>{w.key.title}</h1>
        {ended.value === "refused" && <p class="notice warn" role="status">{w.key.ended}</p>}
        {ended.value === "signed-out" && <p class="notice" role="status">{w.key.signedOut}</p>}
        <form noValidate onSubmit={(event) => { event.preventDefault(); void enter(); }}>
          <div class="field">
            <label for={input}>{w.key.label}</label>
            <div class="joined">
              <input
                id={input} type={(visible.value ? "text" : "password") as "password"} autocomplete="off" spellcheck={false} autocapitalize="off"
                placeholder="esk_…" value={typed.value} aria-describedby={`${input}-hint`} aria-invalid={problem.value !== null}
                onInput={(event) => { typed.value = event.currentTarget.value; problem.value = null; }}
              />
              <button type="button" aria-pressed={visible.value} onClick={() => { visible.value = !visible.value; }}>{w.key.show}</button>
            </div>
            {problem.value !== null && <p class="hint bad" role="alert">{problem.value}</p>}
            <p class="hint" id={`${input}-hint`}>{w.key.hint} <code>earshot keys create</code></p>
          </div>
          <button type="submit" class="primary block" disabled={busy.value}>{busy.value ? w.key.checking : w.key.enter}</button>
        </form>
        <p class="faint small">{w.key.kept}</p>
      </div>
    </main>
  );
}

export function KeyPage() {
  const namespaces = useNamespaces();
  const me = caller.value;
  if (me === null) {
    return null;
  }
  return (
    <Page title={w.key.page}>
      <dl class="facts card">
        <dt>{w.key.account}</dt><dd>{me.account}</dd>
        <dt>{w.key.role}</dt><dd>{w.roles[me.role]} <span class="faint">{w.key.roleMeans[me.role]}</span></dd>
        <dt>{w.key.namespaces}</dt>
        <dd>
          {me.namespaces === undefined ? <p>{w.key.all}</p> : null}
          <ul class="plain">
            {(namespaces.data ?? []).map((one) => <li key={one.name}><a href={href(`n/${id(one.name)}/overview`)}><bdi dir="auto">{one.nickname}</bdi></a></li>)}
          </ul>
        </dd>
        <dt>{w.key.expires}</dt><dd>{me.expireTime ? <>{moment(me.expireTime)} (<Time iso={me.expireTime} focusable />)</> : w.key.never}</dd>
        <dt>{w.key.quotas}</dt>
        <dd>{(["namespaces", "managers", "connections", "feeds", "contentBytes", "scansPerDay"] as const).map((quota) => <p key={quota}>{w.key.quota[quota](number(me.quotas[quota].used), number(me.quotas[quota].limit))}</p>)}</dd>
        <dt>{w.key.rate}</dt>
        <dd>
          <p>{w.key.points(number(me.rateLimitPerMinute))}</p>
          <p>{w.key.accountPoints(number(me.accountRateLimitPerMinute))}</p>
        </dd>
      </dl>
      <p class="actions"><Act run={async () => end("signed-out")}>{w.nav.signOut}</Act></p>
      <p class="faint small">{w.key.kept}</p>
    </Page>
  );
}
