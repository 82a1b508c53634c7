// Sending the past again: counted first, then begun, then watched, and cancelled if need be.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import { DELIVERY_STATES, type DeliveryState, type Replay } from "../api/types";
import { tell } from "../parts/announce";
import { Act, Empty, Field, Loaded, State } from "../parts/basics";
import { Dialog, ObjectMenu } from "../parts/dialog";
import { Failed, fieldError, tellError } from "../parts/errors";
import { useQuery } from "../parts/query";
import { moment, number, Time } from "../parts/time";
import { mayWrite } from "../session";
import { w } from "../words/en";

const WATCH_MS = 2_000;
const CALM_MS = 30_000;

/** As the field for a local time has it. */
function local(time: number): string {
  const date = new Date(time);
  return new Date(time - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function ReplayDialog({ connection, onClose }: { connection: string; onClose: (begun: boolean) => void }) {
  const from = useSignal(local(Date.now() - 86_400_000));
  const to = useSignal("");
  const states = useSignal<DeliveryState[]>(["EXHAUSTED"]);
  const count = useSignal<number | null>(null);
  const failed = useSignal<unknown>(undefined);
  const window = () => ({
    startTime: new Date(from.value).toISOString(),
    ...(to.value ? { endTime: new Date(to.value).toISOString() } : {}),
    ...(states.value.length > 0 ? { states: states.value } : {}),
  });
  const ask = async () => {
    failed.value = undefined;
    count.value = (await api.replay(connection, window(), true)).total;
  };
  const begin = async () => {
    failed.value = undefined;
    await api.replay(connection, window(), false);
    tell(w.replay.begun);
    onClose(true);
  };
  const onError = (error: unknown) => { failed.value = error; };
  const changed = () => { count.value = null; };
  const valid = !Number.isNaN(Date.parse(from.value)) && (to.value === "" || !Number.isNaN(Date.parse(to.value)));
  return (
    <Dialog title={w.replay.title} onClose={() => onClose(false)}>
      <div class="body form">
        <p class="faint">{w.replay.means}</p>
        <div class="columns">
          <Field label={w.replay.from} error={fieldError(failed.value, "startTime")}>
            {(attributes) => <input {...attributes} type="datetime-local" value={from.value} onInput={(event) => { from.value = event.currentTarget.value; changed(); }} />}
          </Field>
          <Field label={w.replay.to} hint={w.replay.toHint} error={fieldError(failed.value, "endTime")}>
            {(attributes) => <input {...attributes} type="datetime-local" value={to.value} onInput={(event) => { to.value = event.currentTarget.value; changed(); }} />}
          </Field>
        </div>
        <fieldset>
          <legend>{w.replay.states}</legend>
          {DELIVERY_STATES.filter((one) => one !== "CANCELLED" && one !== "IN_FLIGHT").map((one) => (
            <label class="choice" key={one}>
              <input type="checkbox" checked={states.value.includes(one)} onChange={() => { states.value = DELIVERY_STATES.filter((state) => (state === one) !== states.value.includes(state)); changed(); }} /> {w.delivery.states[one]}
            </label>
          ))}
          <p class="hint">{w.replay.statesHint}</p>
        </fieldset>
        {failed.value !== undefined && <Failed error={failed.value} />}
        <p role="status">{count.value !== null && <strong>{w.replay.count(count.value)}</strong>}</p>
      </div>
      <footer>
        <button type="button" onClick={() => onClose(false)}>{w.cancel}</button>
        {count.value === null
          ? <Act class="primary" run={ask} onError={onError} disabled={!valid}>{w.replay.ask}</Act>
          : <Act class="primary" run={begin} onError={onError} disabled={count.value === 0}>{w.replay.begin(number(count.value))}</Act>}
      </footer>
    </Dialog>
  );
}

export function Replays({ connection }: { connection: string }) {
  const watching = useSignal(false);
  const replays = useQuery(`${connection}/replays`, async (read) => {
    const page = await api.replays(connection, read);
    watching.value = page.items.some((one) => one.state === "RUNNING");
    return page.items;
  }, watching.value ? WATCH_MS : CALM_MS);
  const cancel = async (replay: Replay) => {
    await api.cancelReplay(replay.name);
    tell(w.replay.cancelled);
    replays.reload();
  };
  return (
    <Loaded query={replays}>
      {(list) => (list.length === 0 ? <Empty title={w.replay.none} why={w.replay.noneWhy} /> : (
        <ul class="replays">
          {list.map((one) => (
            <li key={one.name} class="card with-menu">
              <p>
                <State tone={one.state === "RUNNING" ? "busy" : one.state === "DONE" ? "good" : "idle"}>{w.replay.words[one.state]}</State>{" "}
                <span class="faint">{moment(one.startTime)} – {moment(one.endTime)}, {(one.states ?? []).map((state) => w.delivery.states[state]).join(", ") || w.replay.anyState}</span>
              </p>
              <p class="progress-line"><progress aria-label={w.replay.progress} max={Math.max(1, one.total)} value={one.total === 0 ? 1 : one.done} /> {w.replay.done(number(one.done), number(one.total))} <span class="faint"><Time iso={one.createTime} focusable /></span></p>
              <ObjectMenu name={one.name} value={one} path={one.name} />
              {one.state === "RUNNING" && mayWrite.value && <Act run={() => cancel(one)} onError={(error) => tellError(error)}>{w.replay.cancel}</Act>}
            </li>
          ))}
        </ul>
      ))}
    </Loaded>
  );
}
