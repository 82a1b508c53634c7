// Small pieces that every page is made of.
import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { hasArrived } from "../router";
import { w } from "../words/en";
import { Failed } from "./errors";
import type { Query } from "./query";

/** A page: its heading takes the focus when one comes here. */
export function Page(props: { title: string; actions?: ComponentChildren; lead?: ComponentChildren; back?: { href: string; text: string }; wide?: boolean; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (hasArrived()) {
      scrollTo(0, 0);
      heading.current?.focus({ preventScroll: true });
    }
  }, []);
  useEffect(() => {
    document.title = `${props.title} · Earshot`;
  }, [props.title]);
  return (
    <div class={props.wide ? "page wide" : "page"}>
      <header class="head">
        <div class="head-words">
          {props.back && <a class="back" href={props.back.href}>← {props.back.text}</a>}
          <h1 ref={heading} tabIndex={-1} dir="auto">{props.title}</h1>
          {props.lead && <div class="lead">{props.lead}</div>}
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </div>
  );
}

export type Tone = "good" | "warn" | "bad" | "idle" | "busy";
/** A disc, a triangle, a square, a ring, and a disc half full. */
const MARKS: Record<Tone, string> = {
  good: "M5 1a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
  warn: "M5 .8 9.7 9.2H.3z",
  bad: "M1.5 1.5h7v7h-7z",
  idle: "M5 1a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 1.6a2.4 2.4 0 1 1 0 4.8 2.4 2.4 0 0 1 0-4.8z",
  busy: "M5 1a4 4 0 1 0 0 8 4 4 0 0 0 0-8zm0 1.4v5.2a2.6 2.6 0 0 1 0-5.2z",
};

/** A state as a word, with a mark that differs by more than its colour. */
export function State({ tone, children, title }: { tone: Tone; children: ComponentChildren; title?: string | undefined }) {
  return (
    <span class={`state ${tone}`} title={title}>
      <svg viewBox="0 0 10 10" width="9" height="9" aria-hidden="true"><path fill-rule="evenodd" d={MARKS[tone]} /></svg>
      <span>{children}</span>
    </span>
  );
}

export function Empty({ title, why, children }: { title: string; why?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {why && <div class="why">{why}</div>}
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

/** Grey bars where data will be; they show after 150 ms. */
export function Skeleton({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeleton" aria-busy="true">
      <span class="hidden">{w.loading}</span>
      {Array.from({ length: rows }, (_, row) => <div key={row} class={`bar w${row % 3}`} />)}
    </div>
  );
}

/** What a query gave: its data, even old data beside an error. */
export function Loaded<T>({ query, rows, children }: { query: Query<T>; rows?: number; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {query.error !== undefined && <Failed error={query.error} retry={query.reload} />}
      {query.data !== undefined ? children(query.data) : query.error === undefined && <Skeleton rows={rows ?? 4} />}
    </>
  );
}

/** Text of others: its own direction, isolated from ours. */
export function Foreign({ children }: { children: string }) {
  return <bdi dir="auto">{children}</bdi>;
}

/** Only http and https, with the host shown by whoever links. */
export function safeUrl(text: string | undefined): URL | undefined {
  try {
    const url = new URL(text ?? "");
    return url.protocol === "https:" || url.protocol === "http:" ? url : undefined;
  } catch {
    return undefined;
  }
}

export function Outside({ url, children, id }: { url: string; children?: ComponentChildren; id?: string }) {
  const safe = safeUrl(url);
  if (!safe) {
    return <span class="faint"><Foreign>{url}</Foreign></span>;
  }
  return (
    <a href={safe.href} id={id} target="_blank" rel="noopener noreferrer">
      {children ?? safe.host}{children && <span class="faint"> ({safe.host})</span>} <span aria-hidden="true">↗</span><span class="hidden"> {w.newTab}</span>
    </a>
  );
}

interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (attributes: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ComponentChildren;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": describedBy, "aria-invalid": error !== undefined })}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      {error && <p class="hint bad" id={`${id}-error`}>{error}</p>}
    </div>
  );
}

/** A list of words, one to be typed at a time, or pasted with line breaks. */
export function Words(props: { id?: string; values: string[]; onChange: (values: string[]) => void; placeholder?: string; label: string; max?: number; maxLength?: number; describedBy?: string | undefined }) {
  const add = (text: string) => {
    const given = text.split("\n").map((one) => one.trim()).filter(Boolean);
    const fresh = given.filter((one, place) => !props.values.includes(one) && given.indexOf(one) === place);
    if (fresh.length > 0) {
      props.onChange([...props.values, ...fresh].slice(0, props.max ?? 500));
    }
  };
  const typed = (event: TargetedKeyboardEvent<HTMLInputElement>) => {
    const input = event.currentTarget;
    if (event.key === "Enter") {
      event.preventDefault();
      add(input.value);
      input.value = "";
    } else if (event.key === "Backspace" && input.value === "") {
      props.onChange(props.values.slice(0, -1));
    }
  };
  return (
    <div class="words">
      {props.values.map((value) => (
        <span class="chip" key={value}>
          <Foreign>{value}</Foreign>
          <button type="button" aria-label={w.remove(value)} onClick={() => props.onChange(props.values.filter((one) => one !== value))}>×</button>
        </span>
      ))}
      <input
        id={props.id} aria-label={props.id ? undefined : props.label} placeholder={props.placeholder ?? w.addWord} maxLength={props.maxLength ?? 2048}
        aria-describedby={props.describedBy} onKeyDown={typed} dir="auto"
        onPaste={(event) => {
          const text = event.clipboardData?.getData("text") ?? "";
          if (text.includes("\n")) {
            event.preventDefault();
            add(text);
          }
        }}
        onBlur={(event) => { add(event.currentTarget.value); event.currentTarget.value = ""; }}
      />
    </div>
  );
}

/** A button that waits for its answer, and cannot be pressed twice meanwhile. */
export function Act(props: { run: () => Promise<unknown>; class?: string; children: ComponentChildren; label?: string; disabled?: boolean; onError?: (error: unknown) => void }) {
  const busy = useSignal(false);
  const press = async () => {
    if (busy.value) {
      return;
    }
    busy.value = true;
    try {
      await props.run();
    } catch (error) {
      props.onError?.(error);
    } finally {
      busy.value = false;
    }
  };
  return (
    <button type="button" class={props.class} aria-label={props.label} disabled={props.disabled} aria-busy={busy.value} onClick={() => void press()}>
      {props.children}
    </button>
  );
}

export function Tabs({ tabs, current, label }: { tabs: { id: string; text: string; href: string }[]; current: string; label: string }) {
  const nav = useRef<HTMLElement>(null);
  // Where there is no room for all of them, the present one is in sight.
  useEffect(() => {
    const tab = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && tab) {
      nav.current.scrollLeft = tab.offsetLeft - (nav.current.clientWidth - tab.offsetWidth) / 2;
    }
  }, [current]);
  return (
    <nav class="tabs" aria-label={label} ref={nav}>
      {tabs.map((tab) => <a key={tab.id} href={tab.href} aria-current={tab.id === current ? "page" : undefined}>{tab.text}</a>)}
    </nav>
  );
}

export function Switch({ on, label, onChange, disabled }: { on: boolean; label: string; onChange: (on: boolean) => void; disabled?: boolean }) {
  return (
    <button type="button" role="switch" class="switch" aria-checked={on} aria-label={label} disabled={disabled} onClick={() => onChange(!on)}>
      <span aria-hidden="true" />
    </button>
  );
}
