// What is said of results: to screen readers, and for a few seconds at the edge of the page, with a way back.
import { signal } from "@preact/signals";
import { w } from "../words/en";

interface Toast {
  id: number;
  text: string;
  undo: (() => void) | undefined;
  /** Of a failure: what else is known of it. */
  detail: string | undefined;
  bad: boolean;
}

const UNDO_MS = 8_000;
const SAID_MS = 5_000;
const MAX_TOASTS = 3;

const toasts = signal<Toast[]>([]);
const said = signal("");
let last = 0;

/** For ears alone. */
export function announce(text: string): void {
  // The same words again are news too.
  said.value = said.value === text ? `${text}\u00a0` : text;
}

export function tell(text: string, undo?: () => void): void {
  show({ text, undo, detail: undefined, bad: false });
  announce(undo ? `${text} ${w.toast.undoHint}` : text);
  const id = last;
  setTimeout(() => dismiss(id), undo ? UNDO_MS : SAID_MS);
}

/** A failure stays until it is dismissed: nobody has to be quick to read it. */
export function warn(text: string, detail: string): void {
  if (!toasts.value.some((one) => one.bad && one.text === text && one.detail === detail)) {
    show({ text, undo: undefined, detail, bad: true });
  }
  announce(`${text} ${detail}`);
}

function show(toast: Omit<Toast, "id">): void {
  last += 1;
  toasts.value = [...toasts.value, { id: last, ...toast }].slice(-MAX_TOASTS);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** Takes back the newest thing that can be; false when there is none. */
export function undoLast(): boolean {
  const toast = toasts.value.findLast((one) => one.undo !== undefined);
  if (!toast) {
    return false;
  }
  dismiss(toast.id);
  toast.undo?.();
  return true;
}

export function Announcements() {
  return (
    <>
      <div class="hidden" role="status" aria-live="polite">{said.value}</div>
      <section class="toasts" aria-label={w.toast.messages}>
        {toasts.value.map((toast) => (
          <div class={toast.bad ? "toast bad" : "toast"} key={toast.id}>
            <span>{toast.text}{toast.detail && <span class="toast-detail">{toast.detail}</span>}</span>
            {toast.undo && (
              <button type="button" class="link" onClick={() => { dismiss(toast.id); toast.undo?.(); }}>{w.toast.undo}</button>
            )}
            <button type="button" class="icon" aria-label={w.toast.close} onClick={() => dismiss(toast.id)}>×</button>
          </div>
        ))}
      </section>
    </>
  );
}
