// How many posts a Manager finds: the choice, with what the chosen setting means below it.
import { SENSITIVITIES, type Sensitivity } from "../api/types";
import { w } from "../words/en";
import { Field } from "./basics";

export function SensitivityField({ value, error, onChange }: { value: Sensitivity; error: string | undefined; onChange: (value: Sensitivity) => void }) {
  return (
    <Field label={w.sensitivityLabel} hint={w.sensitivityMeans[value]} error={error}>
      {(attributes) => (
        <select {...attributes} value={value} onChange={(event) => { onChange(event.currentTarget.value as Sensitivity); }}>
          {SENSITIVITIES.map((one) => <option key={one} value={one}>{w.sensitivity[one]}</option>)}
        </select>
      )}
    </Field>
  );
}
