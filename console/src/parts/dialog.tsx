// Dialogs, menus, and what every object has in one: its JSON, the curl that reads it, its name.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { signal, useSignal } from "@preact/signals";
import { curl } from "../api/client";
import { w } from "../words/en";
import { announce, tell } from "./announce";
import { Failed } from "./errors";

export function Dialog({ title, onClose, children, wide }: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  // Before the next frame on both ends: the focus is never nowhere.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  return (
    <dialog
      ref={dialog} class={wide ? "wide" : ""} aria-labelledby={heading}
      onCancel={(event) => { event.preventDefault(); onClose(); }}
      onClick={(event) => { if (event.target === dialog.current) { onClose(); } }}
    >
      <div class="dialog">
        <header><h2 id={heading}>{title}</h2><button type="button" class="icon" aria-label={w.close} onClick={onClose}>×</button></header>
        {children}
      </div>
    </dialog>
  );
}

/** Asks before something that cannot be taken back; `word` must be typed where given. */
export function Confirm(props: { title: string; text: ComponentChildren; action: string; word?: string; danger?: boolean; run: () => Promise<unknown>; onClose: () => void }) {
  const typed = useSignal("");
  const failed = useSignal<unknown>(undefined);
  const busy = useSignal(false);
  const id = useId();
  const ready = props.word === undefined || typed.value.trim() === props.word.trim();
  const run = async () => {
    busy.value = true;
    failed.value = undefined;
    try {
      await props.run();
      props.onClose();
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div class="body">
        <div>{props.text}</div>
        {props.word !== undefined && (
          <div class="field">
            <label for={id}>{w.confirm.type} <strong><bdi dir="auto">{props.word}</bdi></strong></label>
            <input id={id} value={typed.value} autocomplete="off" onInput={(event) => { typed.value = event.currentTarget.value; }} />
          </div>
        )}
        {failed.value !== undefined && <Failed error={failed.value} />}
      </div>
      <footer>
        <button type="button" onClick={props.onClose}>{w.cancel}</button>
        <button type="button" class={props.danger ? "danger" : "primary"} disabled={!ready || busy.value} onClick={() => void run()}>{props.action}</button>
      </footer>
    </Dialog>
  );
}

/** A button with a list of things to do below it. */
export function Menu({ label, children, button }: { label: string; children: ComponentChildren; button?: ComponentChildren }) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const away = (event: Event) => {
      if (details.current?.open && !details.current.contains(event.target as Node)) {
        details.current.open = false;
      }
    };
    addEventListener("click", away);
    return () => removeEventListener("click", away);
  }, []);
  return (
    <details
      class="menu" ref={details}
      onKeyDown={(event) => {
        if (event.key === "Escape" && details.current?.open) {
          event.stopPropagation();
          details.current.open = false;
          details.current.querySelector("summary")?.focus();
        }
      }}
    >
      <summary class="button" aria-label={button === undefined ? label : undefined}>{button ?? "⋯"}</summary>
      <div class="menu-items" onClick={() => { if (details.current) { details.current.open = false; } }}>{children}</div>
    </details>
  );
}

const shown = signal<{ title: string; text: string } | null>(null);

/** Shows text to be selected by hand, where the clipboard cannot be had. */
export function showText(title: string, text: string): void {
  shown.value = { title, text };
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell(w.object.copied);
  } catch {
    // Pages served by plain HTTP have no clipboard.
    showText(w.object.copyByHand, text);
  }
}

export function ShownText() {
  if (!shown.value) {
    return null;
  }
  const { title, text } = shown.value;
  return (
    <Dialog title={title} wide onClose={() => { shown.value = null; }}>
      <pre class="code" tabIndex={0}>{text}</pre>
      <footer><button type="button" onClick={() => { void copy(text); announce(w.object.copied); }}>{w.object.copy}</button></footer>
    </Dialog>
  );
}

/** Machine words, one click away. */
export function ObjectMenu({ name, value, path, children }: { name?: string; value: unknown; path: string; children?: ComponentChildren }) {
  return (
    <Menu label={w.object.more}>
      {children}
      {name !== undefined && <button type="button" onClick={() => void copy(name)}>{w.object.copyName}</button>}
      <button type="button" onClick={() => void copy(curl(path))}>{w.object.copyCurl}</button>
      <button type="button" onClick={() => showText(w.object.asJson, JSON.stringify(value, null, 2))}>{w.object.asJson}</button>
    </Menu>
  );
}
