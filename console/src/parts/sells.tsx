// The fields for what a customer sells.
import type { Sells } from "../api/types";
import { w } from "../words/en";
import { Field, Words } from "./basics";

export function SellsFields({ sells, hint, onChange }: { sells: Sells; hint?: string; onChange: (sells: Sells) => void }) {
  return (
    <fieldset>
      <legend>{w.looks.sells}</legend>
      {hint && <p class="hint">{hint}</p>}
      <Field label={w.looks.summary} hint={w.looks.summaryHint}>
        {(attributes) => <textarea {...attributes} rows={3} dir="auto" maxLength={500} value={sells.summary ?? ""} onInput={(event) => onChange({ ...sells, summary: event.currentTarget.value.replace(/\s/g, " ") })} />}
      </Field>
      <Field label={w.looks.offers} hint={w.looks.offersHint}>
        {(attributes) => <Words id={attributes.id} describedBy={attributes["aria-describedby"]} label={w.looks.offers} max={20} maxLength={100} values={sells.offers ?? []} onChange={(offers) => onChange({ ...sells, offers })} />}
      </Field>
    </fieldset>
  );
}
