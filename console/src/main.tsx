// The console: which page the address asks for, and what is around it.
//
// All that it does goes through the public API with the key that was typed in; there is no other way in.
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Announcements } from "./parts/announce";
import { Empty, Page, Skeleton } from "./parts/basics";
import { Dialog, ShownText } from "./parts/dialog";
import { Failed } from "./parts/errors";
import { useKeys } from "./parts/keys";
import { useNamespaces } from "./parts/names";
import { Shell } from "./parts/shell";
import { go, href, route } from "./router";
import { caller, key, mayAudit, mayWrite, resume, showTheme } from "./session";
import { w } from "./words/en";
import { id } from "./api/types";
import { AuditLog } from "./pages/audit";
import { ConnectionPage } from "./pages/connection";
import { NewConnection } from "./pages/connection-new";
import { Connections } from "./pages/connections";
import { DeliveryPage } from "./pages/delivery";
import { Help, KeyList } from "./pages/help";
import { Inbox } from "./pages/inbox";
import { KeyPage, SignIn } from "./pages/key";
import { ManagerPage } from "./pages/manager";
import { NewManager } from "./pages/manager-new";
import { Managers } from "./pages/managers";
import { Namespaces } from "./pages/namespaces";
import { Overview } from "./pages/overview";
import "./style.css";

const ID = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The page of a path. A page of another object is another page: it begins afresh. */
function pageOf(path: string[]): ComponentChildren {
  const [first, namespace, kind, object, tab, last] = path;
  if (first === "help") {
    return <Help />;
  }
  if (first === "key") {
    return <KeyPage />;
  }
  if (first === "audit") {
    return mayAudit.value ? <AuditLog /> : <Nowhere />;
  }
  if (first === "namespaces" || first === "sign-in" || first === undefined) {
    return <Namespaces />;
  }
  if (first !== "n" || namespace === undefined || !ID.test(namespace)) {
    return <Nowhere />;
  }
  switch (kind) {
    case "overview":
      return <Overview key={namespace} namespace={namespace} />;
    case "inbox":
      return <Inbox key={namespace} namespace={namespace} />;
    case "managers":
      return object === undefined ? <Managers key={namespace} namespace={namespace} />
        : object === "new" ? (mayWrite.value ? <NewManager key={namespace} namespace={namespace} /> : <Nowhere />)
          : <ManagerPage key={object} namespace={namespace} manager={object} tab={tab} />;
    case "connections":
      return object === undefined ? <Connections key={namespace} namespace={namespace} />
        : object === "new" ? (mayWrite.value ? <NewConnection key={namespace} namespace={namespace} /> : <Nowhere />)
          : tab === "deliveries" && last !== undefined ? <DeliveryPage key={last} connection={`namespaces/${namespace}/connections/${encodeURIComponent(object)}`} delivery={last} />
            : <ConnectionPage key={object} namespace={namespace} connection={object} tab={tab} />;
    default:
      return <Nowhere />;
  }
}

function Nowhere() {
  return <Page title={w.nowhere.title}><Empty title={w.nowhere.why}><a class="button" href={href("")}>{w.nowhere.back}</a></Empty></Page>;
}

function Signed() {
  const failed = useSignal<unknown>(undefined);
  const help = useSignal(false);
  const namespaces = useNamespaces();
  const path = route.value.path;
  const list = namespaces.data;
  const visited = useRef<string | undefined>(undefined);
  if (path[0] === "n" && path[1] !== undefined) {
    visited.current = path[1];
  }
  // Pages that are of no Namespace keep the way back to the one that was visited last.
  const first = visited.current ?? (list?.[0] && id(list[0].name));
  const namespace = path[0] === "n" ? path[1] : path[0] === "help" || path[0] === "key" || path[0] === "audit" ? first : undefined;
  const start = () => {
    failed.value = undefined;
    resume().catch((error: unknown) => { failed.value = error; });
  };

  useEffect(() => {
    if (caller.value === null) {
      start();
    }
    const retry = () => { if (failed.value !== undefined) { start(); } };
    addEventListener("earshot:retry", retry);
    return () => removeEventListener("earshot:retry", retry);
  }, []);
  // Someone with one Namespace goes straight into it.
  useEffect(() => {
    if (path.length === 0 && list?.length === 1 && list[0]) {
      go(href(`n/${id(list[0].name)}/overview`), true);
    }
  }, [path.length, list]);
  const place = path.join("/");
  const to = (page: string) => () => { if (first) { go(href(`n/${first}/${page}`)); } };
  useKeys({
    "g o": to("overview"), "g i": to("inbox"), "g m": to("managers"), "g c": to("connections"),
    "?": () => { help.value = true; },
  });

  return (
    <Shell namespace={namespace}>
      {failed.value !== undefined && caller.value === null
        ? <Failed error={failed.value} retry={start} />
        : caller.value === null ? <div class="page"><Skeleton /></div>
          : <Guard key={place}>{pageOf(path)}</Guard>}
      {help.value && <Dialog title={w.help.keys} onClose={() => { help.value = false; }}><div class="body"><KeyList /></div></Dialog>}
    </Shell>
  );
}

/** A fault of ours in one page takes neither the others nor the way out. */
class Guard extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError() {
    return { failed: true };
  }

  override componentDidCatch(error: unknown) {
    console.error(error);
  }

  override render() {
    return this.state.failed
      ? <Page title={w.broken.title}><Empty title={w.broken.why}><button type="button" onClick={() => location.reload()}>{w.broken.reload}</button></Empty></Page>
      : this.props.children;
  }
}

function App() {
  return (
    <>
      {key.value === null ? <SignIn /> : <Signed key={key.value} />}
      <Announcements />
      <ShownText />
    </>
  );
}

showTheme();
const place = document.getElementById("app");
if (place) {
  render(<App />, place);
}
