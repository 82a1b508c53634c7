// Frame of every page: the location, the navigation, and problems that block the console.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { lastAnswer, limitedUntil, link, retryNow } from "../api/client";
import { id } from "../api/types";
import { go, href, route } from "../router";
import { caller, mayAudit, mayWrite, setTheme, signOut, theme, type Theme } from "../session";
import { w } from "../words/en";
import { Menu } from "./dialog";
import { useNamespaces } from "./names";
import { Time, ago, now } from "./time";

export function Brand() {
  return (
    <span class="brand">
      <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M10 13v6M16 8v16M22 11.5v9" /></svg>
      Earshot
    </span>
  );
}

const PAGES = ["overview", "inbox", "managers", "connections"] as const;
const ICONS: Record<(typeof PAGES)[number], string> = {
  overview: "M3 13h4v4H3zM8.5 8h4v9h-4zM14 3h4v14h-4z",
  inbox: "M3 11h4l1.5 3h4L14 11h4M5 4h11l2 7v6H3v-6z",
  managers: "M9.5 15a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11zm4-1.5L18 18",
  connections: "M8 12.5 12.5 8M9 6l2-2a3.9 3.9 0 0 1 5.5 5.5l-2 2M12 14.5l-2 2A3.9 3.9 0 0 1 4.500 11l2-2",
};

export function Shell({ namespace, children }: { namespace: string | undefined; children: ComponentChildren }) {
  const main = useRef<HTMLElement>(null);
  const current = route.value.path[2];
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>{w.nav.skip}</button>
      <header class="side">
        <div class="side-top">
          <Brand />
          <NamespaceChoice current={namespace} />
        </div>
        {namespace && (
          <nav aria-label={w.nav.main} class="main-nav">
            {PAGES.map((page) => (
              <a key={page} href={href(`n/${namespace}/${page}`)} aria-current={current === page ? "page" : undefined}>
                <svg viewBox="0 0 21 21" width="18" height="18" aria-hidden="true"><path d={ICONS[page]} /></svg>
                <span>{w.nav[page]}</span>
              </a>
            ))}
          </nav>
        )}
        <div class="side-foot">
          <a href={href("help")} aria-current={route.value.path[0] === "help" ? "page" : undefined}>{w.nav.help}</a>
          <Account />
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Banners />
        {children}
      </main>
    </div>
  );
}

function NamespaceChoice({ current }: { current: string | undefined }) {
  const namespaces = useNamespaces();
  const list = namespaces.data ?? [];
  if (list.length === 0) {
    return namespaces.data === undefined ? <div class="namespace-place" /> : null;
  }
  const chosen = (value: string) => go(value === "" ? href("namespaces") : href(`n/${value}/${PAGES.find((page) => page === route.value.path[2]) ?? "overview"}`));
  return (
    <select class="namespace" aria-label={w.nav.namespace} value={current ?? ""} onChange={(event) => chosen(event.currentTarget.value)}>
      {current === undefined && <option value="">{w.nav.chooseNamespace}</option>}
      {list.map((one) => <option key={one.name} value={id(one.name)}>{one.nickname}</option>)}
      {current !== undefined && <option value="">{w.nav.allNamespaces}</option>}
    </select>
  );
}

function Account() {
  const themes: Theme[] = ["auto", "light", "dark"];
  return (
    <Menu label={w.nav.account} button={<><span class="hidden">{w.nav.account}: </span><span class="account-name">{caller.value?.account ?? "…"}</span> <span class="faint small">{caller.value ? w.roles[caller.value.role] : ""}</span></>}>
      <a href={href("key")}>{w.nav.key}</a>
      <a href={href("namespaces")}>{w.nav.allNamespaces}</a>
      {mayAudit.value && <a href={href("audit")}>{w.nav.audit}</a>}
      <div class="menu-group" role="group" aria-label={w.nav.theme}>
        {themes.map((one) => (
          <button type="button" key={one} aria-pressed={theme.value === one} onClick={() => setTheme(one)}>{w.nav.themes[one]}</button>
        ))}
      </div>
      <button type="button" onClick={() => void signOut()}>{w.nav.signOut}</button>
    </Menu>
  );
}

/** From then on, a key that expires is announced on each page. Who has a session signs in again. */
const EXPIRES_SOON_MS = 14 * 86_400_000;

/** The network, the rate limit, the end of the key, and what it may not do. */
function Banners() {
  const state = link.value;
  const expires = caller.value?.expireTime;
  const at = useSignal(Date.now());
  const limited = limitedUntil.value > at.value;
  const ticking = limited || state.state !== "ok";
  useEffect(() => {
    at.value = Date.now();
    if (!ticking && limitedUntil.value <= Date.now()) {
      return undefined;
    }
    const timer = setInterval(() => { at.value = Date.now(); }, 1_000);
    return () => clearInterval(timer);
  }, [ticking, limitedUntil.value]);
  const age = lastAnswer.value > 0 ? w.banner.age(ago(new Date(lastAnswer.value).toISOString(), Math.max(at.value, now.value))) : "";
  return (
    <>
      {state.state !== "ok" && (
        <div class="banner bad" role="alert">
          <span><strong>{w.banner[state.state]}</strong> {age} {state.retryAt > at.value ? w.banner.retryIn(Math.ceil((state.retryAt - at.value) / 1000)) : ""}</span>
          <button type="button" onClick={() => { retryNow(); dispatchEvent(new Event("earshot:retry")); }}>{w.banner.retry}</button>
        </div>
      )}
      {limited && (
        <div class="banner warn" role="status">{w.banner.limited(Math.ceil((limitedUntil.value - at.value) / 1000))}</div>
      )}
      {expires !== undefined && caller.value?.person === undefined && Date.parse(expires) - now.value < EXPIRES_SOON_MS && (
        <div class="banner warn" role="status"><span>{w.banner.expires} <Time iso={expires} focusable />. {w.banner.rotate}</span></div>
      )}
      {caller.value !== null && !mayWrite.value && <p class="read-only">{w.banner.readOnly}</p>}
    </>
  );
}
