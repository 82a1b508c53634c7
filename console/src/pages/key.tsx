// One field for the key, next to sign-in by a provider; and once there is a key, what it may do.
import { useEffect, useId } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, signInStep } from "../api/client";
import { id } from "../api/types";
import { Act, Page } from "../parts/basics";
import { errorText } from "../parts/errors";
import { useNamespaces } from "../parts/names";
import { Brand } from "../parts/shell";
import { Time, moment, number } from "../parts/time";
import { href, route } from "../router";
import { caller, comeBack, ended, leave, signIn, signOut } from "../session";
import { w } from "../words/en";

const FORM = /^esk_[0-9a-z]{26}_[0-9A-Za-z_-]{43}$/;

export function SignIn() {
  const input = useId();
  const typed = useSignal("");
  const visible = useSignal(false);
  const problem = useSignal<string | null>(null);
  const busy = useSignal(false);
  const provider = useSignal<string | undefined>(undefined);
  const failed = useSignal<string | undefined>(undefined);
  const back = useSignal(false);

  useEffect(() => {
    // Without an answer, the field for the key is there.
    signInStep<{ provider?: string }>("sign-in").then((answer) => { provider.value = answer.provider; }, () => undefined);
    const { path, query } = route.value;
    if (path[0] !== "sign-in") {
      return;
    }
    const reason = query.get("failed");
    if (reason !== null) {
      failed.value = w.key.failed[reason] ?? w.key.failed["unavailable"];
    } else if (query.has("done")) {
      back.value = true;
      comeBack().catch((error: unknown) => {
        back.value = false;
        failed.value = error instanceof ApiError && error.status === 401 ? w.key.failed["expired"] : errorText(error);
      });
    }
  }, []);

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
        <h1>{provider.value === undefined ? w.key.title : w.key.signIn}</h1>
        {ended.value === "refused" && <p class="notice warn" role="status">{w.key.ended}</p>}
        {ended.value === "signed-out" && <p class="notice" role="status">{w.key.signedOut}</p>}
        {ended.value === "not-revoked" && <p class="notice warn" role="status">{w.key.notRevoked}</p>}
        {failed.value !== undefined && <p class="notice bad" role="alert">{failed.value}</p>}
        {back.value && <p class="notice" role="status">{w.key.signingIn}</p>}
        {provider.value !== undefined && <a class="button primary" href="sign-in/begin" onClick={leave}>{w.key.with(provider.value)}</a>}
        {provider.value !== undefined && <p class="faint small">{w.key.or}</p>}
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
        {me.person !== undefined && <><dt>{w.key.person}</dt><dd><bdi dir="auto">{me.person}</bdi></dd></>}
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
      <p class="actions"><Act run={signOut}>{w.nav.signOut}</Act></p>
      <p class="faint small">{w.key.kept}</p>
    </Page>
  );
}
