// The Namespaces that the key opens, and a new one where it may make one.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { id } from "../api/types";
import { Empty, Field, Loaded, Page } from "../parts/basics";
import { ObjectMenu } from "../parts/dialog";
import { Failed, fieldError } from "../parts/errors";
import { useNamespaces } from "../parts/names";
import { Time } from "../parts/time";
import { go, href } from "../router";
import { caller, mayCreateNamespaces } from "../session";
import { w } from "../words/en";

export function Namespaces() {
  const namespaces = useNamespaces();
  const me = caller.value;
  return (
    <Page title={w.namespaces.title} lead={me && <>{w.namespaces.lead(me.account, w.roles[me.role])} {me.expireTime ? <>{w.namespaces.expires} <Time iso={me.expireTime} focusable />.</> : w.namespaces.expiresNever}</>}>
      <Loaded query={namespaces}>
        {(list) => (
          <>
            {list.length === 0
              ? <Empty title={w.namespaces.none} why={mayCreateNamespaces.value ? w.namespaces.noneWhy : w.namespaces.noneAsk} />
              : (
                <ul class="cards">
                  {list.map((one) => (
                    <li key={one.name} class="with-menu">
                      <a class="card" href={href(`n/${id(one.name)}/overview`)}>
                        <strong><bdi dir="auto">{one.nickname}</bdi></strong>
                        <span class="faint small">{w.namespaces.since} <Time iso={one.createTime} /></span>
                      </a>
                      <ObjectMenu name={one.name} value={one} path={one.name} />
                    </li>
                  ))}
                </ul>
              )}
            {mayCreateNamespaces.value && <Create />}
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Create() {
  const nickname = useSignal("");
  const failed = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const namespaces = useNamespaces();
  const create = async () => {
    busy.value = true;
    failed.value = undefined;
    try {
      const made = await api.createNamespace(nickname.value);
      namespaces.set([...(namespaces.data ?? []), made]);
      go(href(`n/${id(made.name)}/managers/new`));
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  const wrong = fieldError(failed.value, "nickname");
  return (
    <form noValidate class="card form" onSubmit={(event) => { event.preventDefault(); void create(); }}>
      <h2>{w.namespaces.create}</h2>
      <Field label={w.nickname} hint={w.namespaces.createHint} error={wrong}>
        {(attributes) => <input {...attributes} maxLength={120} value={nickname.value} onInput={(event) => { nickname.value = event.currentTarget.value; }} />}
      </Field>
      {failed.value !== undefined && !wrong && <Failed error={failed.value} />}
      <button type="submit" class="primary" disabled={busy.value || nickname.value.trim() === ""}>{w.create}</button>
    </form>
  );
}
