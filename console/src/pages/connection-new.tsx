// A new Connection, tested before it is kept: it gets nothing but the test until a Manager names it.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Connection, TestResult } from "../api/types";
import { tell } from "../parts/announce";
import { Act, Page } from "../parts/basics";
import { body, ConnectionFields, NEW, type Draft } from "../parts/connection-form";
import { Failed } from "../parts/errors";
import { pageOf, useConnections } from "../parts/names";
import { TestAnswer } from "../parts/test-answer";
import { go, href } from "../router";
import { w } from "../words/en";

export function NewConnection({ namespace }: { namespace: string }) {
  const name = `namespaces/${namespace}`;
  const draft = useSignal<Draft>(NEW);
  const made = useSignal<Connection | null>(null);
  const result = useSignal<TestResult | null>(null);
  const failed = useSignal<unknown>(undefined);
  const kept = useRef(false);
  const connections = useConnections(name);

  // Who leaves without keeping it leaves nothing behind.
  useEffect(() => () => {
    if (made.value && !kept.current) {
      void api.deleteConnection(made.value.name, false).catch(() => undefined);
    }
  }, []);

  const save = async (): Promise<Connection> => {
    failed.value = undefined;
    result.value = null;
    const connection = made.value
      ? await api.updateConnection(made.value.name, body(draft.value, made.value))
      : await api.createConnection(name, body(draft.value));
    made.value = connection;
    return connection;
  };
  const test = async () => {
    const connection = await save();
    result.value = await api.testConnection(connection.name);
  };
  const keep = async () => {
    const connection = await save();
    kept.current = true;
    tell(w.newConnection.saved);
    connections.reload();
    go(pageOf(connection.name));
  };
  const onError = (error: unknown) => { failed.value = error; };
  const incomplete = draft.value.nickname.trim() === "" || draft.value.url.trim() === "";
  const passed = result.value?.ok === true;
  return (
    <Page title={w.newConnection.title} lead={w.newConnection.lead} back={{ href: href(`n/${namespace}/connections`), text: w.connections.title }}>
      <form noValidate class="form card" onSubmit={(event) => event.preventDefault()}>
        <ConnectionFields draft={draft} failed={failed.value} isNew />
        {failed.value !== undefined && <Failed error={failed.value} />}
        <div role="status">{result.value && <TestAnswer result={result.value} />}</div>
        <div class="actions">
          <Act class={passed ? "" : "primary"} run={test} onError={onError} disabled={incomplete}>{result.value ? w.newConnection.testAgain : w.newConnection.test}</Act>
          <Act class={passed ? "primary" : ""} run={keep} onError={onError} disabled={incomplete}>{passed ? w.newConnection.keepIt : w.newConnection.keepUntested}</Act>
          <a class="button" href={href(`n/${namespace}/connections`)}>{w.cancel}</a>
        </div>
        <p class="hint">{w.newConnection.testMeans}</p>
      </form>
    </Page>
  );
}
