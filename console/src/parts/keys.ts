// Keys: single letters, off inside of fields and dialogs and where they are turned off.
import { useEffect, useRef } from "preact/hooks";
import { shortcuts } from "../session";

export type Bindings = Record<string, (event: KeyboardEvent) => void>;

const layers: { current: Bindings }[] = [];
let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

addEventListener("keydown", (event) => {
  if (!shortcuts.value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) {
    return;
  }
  const target = event.target as Element | null;
  if (target?.closest("input, textarea, select, [contenteditable], dialog") || document.querySelector("dialog[open]")) {
    return;
  }
  const pressed = prefix + event.key;
  clearTimeout(prefixTimer);
  prefix = "";
  if (event.key === "g") {
    prefix = "g ";
    prefixTimer = setTimeout(() => { prefix = ""; }, 1_500);
    return;
  }
  for (const layer of [...layers].reverse()) {
    const act = layer.current[pressed];
    if (act) {
      event.preventDefault();
      act(event);
      return;
    }
  }
});

/** While the caller is on the page. The newest layer that knows a key has it. */
export function useKeys(bindings: Bindings): void {
  const layer = useRef(bindings);
  layer.current = bindings;
  useEffect(() => {
    layers.push(layer);
    return () => {
      layers.splice(layers.indexOf(layer), 1);
    };
  }, []);
}
