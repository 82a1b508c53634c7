// What is said of results: to screen readers, and for a few seconds at the edge of the page, with a way back.
import { signal } from "@preact/signals";
import { w } from "../words/en";

interface Toast {
  id: number;
  text: string;
  undo: (() => void) | undefined;
  bad: boolean;
}

const UNDO_MS = 8_000;
const MAX_TOASTS = 3;

const toasts = signal<Toast[]>([]);
const said = signal("");
let last = 0;

/** For ears alone. */
export function announce(text: string): void {
  // The same words again are news too.
  said.value = said.value === text ? `${text}\u00a0` : text;
}

export function tell(text: string, undo?: () => void, bad = false): void {
  last += 1;
  const toast = { id: last, text, undo, bad };
  toasts.value = [...toasts.value, toast].slice(-MAX_TOASTS);
  announce(undo ? `${text} ${w.toast.undoHint}` : text);
  setTimeout(() => dismiss(toast.id), UNDO_MS);
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
      <div class="toasts">
        {toasts.value.map((toast) => (
          <div class={toast.bad ? "toast bad" : "toast"} key={toast.id}>
            <span>{toast.text}</span>
            {toast.undo && (
              <button type="button" class="link" onClick={() => { dismiss(toast.id); toast.undo?.(); }}>{w.toast.undo}</button>
            )}
            <button type="button" class="icon" aria-label={w.toast.close} onClick={() => dismiss(toast.id)}>×</button>
          </div>
        ))}
      </div>
    </>
  );
}
