// A person's word on a Scan: right or wrong, labels, mutes. Shown at once, sent at once, and taken back for 8 seconds.
import { useSignal } from "@preact/signals";
import { api } from "../api";
import type { Manager, Mute, Namespace, Scan } from "../api/types";
import { parent, timestamp } from "../api/types";
import { w } from "../words/en";
import { tell } from "./announce";
import { Dialog } from "./dialog";
import { Failed, tellError } from "./errors";
import { headline } from "./marked";
import { safeUrl } from "./basics";

/** What the list is told of. */
export type Put = (scan: Scan) => void;

/**
 * Returns true if the service counts the Scan as judged: it was marked wrong, or changed since it was made,
 * by its labels alone or by taking a verdict back. Managers learn from these Scans, so the console shows it.
 */
export function isJudged(scan: Scan): boolean {
  return !scan.value || scan.updateTime !== scan.createTime;
}

export async function change(scan: Scan, to: { value?: boolean; labels?: string[] }, put: Put, said: string): Promise<void> {
  const before = { value: scan.value, labels: scan.labels };
  put({ ...scan, ...to });
  const back = async () => {
    put(scan);
    try {
      put(await api.updateScan(scan.name, before));
    } catch (error) {
      tellError(error);
    }
  };
  tell(said, () => void back());
  try {
    put(await api.updateScan(scan.name, to));
  } catch (error) {
    put(scan);
    tellError(error, w.scan.notSaved);
  }
}

/** Instructions that are kept by hand learn nothing of themselves, and the page does not say that they do. */
export function judge(scan: Scan, value: boolean, put: Put, manager: Manager | undefined): Promise<void> {
  const said = value ? w.scan.markedRight : w.scan.markedWrong;
  return change(scan, { value }, put, `${said} ${manager?.mode === "MANUAL" ? w.scan.learnsNothing : w.scan.learns}`);
}

export function LabelDialog({ scan, put, onClose }: { scan: Scan; put: Put; onClose: () => void }) {
  const typed = useSignal(scan.labels.join(", "));
  const save = () => {
    const labels = [...new Set(typed.value.split(",").map((one) => one.trim()).filter(Boolean))].slice(0, 10);
    onClose();
    void change(scan, { labels }, put, w.scan.labelled);
  };
  return (
    <Dialog title={w.scan.labels} onClose={onClose}>
      <form noValidate onSubmit={(event) => { event.preventDefault(); save(); }}>
        <div class="body">
          <div class="field">
            <label for="labels">{w.scan.labelsField}</label>
            <input id="labels" value={typed.value} maxLength={500} dir="auto" autofocus onInput={(event) => { typed.value = event.currentTarget.value; }} />
            <p class="hint">{w.scan.labelsHint}</p>
          </div>
        </div>
        <footer><button type="button" onClick={onClose}>{w.cancel}</button><button type="submit" class="primary">{w.save}</button></footer>
      </form>
    </Dialog>
  );
}

/** What can be muted of a post. */
function candidates(scan: Scan): Candidate[] {
  const { post } = scan;
  const host = safeUrl(post.url)?.hostname;
  const author = post.user.id || post.user.name;
  return [
    // A post that was deleted at its source names no author.
    ...(author ? [{ mute: { type: "AUTHOR", value: author } as Mute, words: w.mute.author(post.user.name || author) }] : []),
    ...(post.subforum ? [{ mute: { type: "SUBFORUM", value: post.subforum.id } as Mute, words: w.mute.place(post.subforum.name) }] : []),
    ...(host ? [{ mute: { type: "SITE", value: host } as Mute, words: w.mute.site(host) }] : []),
  ];
}

interface Candidate {
  mute: Mute;
  words: string;
}

/** Adds it to the mutes of a Manager or Namespace, with a way back. */
async function muteIn(target: string, { mute, words }: Candidate): Promise<void> {
  const others = (mutes: Mute[]) => mutes.filter((one) => one.type !== mute.type || one.value !== mute.value);
  await setMutes(target, (mutes) => [...others(mutes), mute]);
  tell(w.mute.done(words, !target.includes("/managers/")), () => {
    void setMutes(target, others).then(() => tell(w.mute.undone), (error: unknown) => tellError(error));
  });
}

/** Without a dialog: its author or its place, of this Manager, until it is taken back. */
export async function muteAtOnce(scan: Scan, type: "AUTHOR" | "SUBFORUM"): Promise<void> {
  const candidate = candidates(scan).find((one) => one.mute.type === type);
  if (!candidate) {
    tell(w.mute.nothing[type]);
    return;
  }
  try {
    await muteIn(parent(scan.name), candidate);
  } catch (error) {
    tellError(error);
  }
}

const EXPIRIES: [string, number | null][] = [["always", null], ["week", 7], ["month", 30]];

export function MuteDialog({ scan, namespace, onClose }: { scan: Scan; namespace: Namespace | undefined; onClose: () => void }) {
  const choices = candidates(scan);
  const chosen = useSignal(0);
  const expiry = useSignal("always");
  const everywhere = useSignal(false);
  const busy = useSignal(false);
  const failed = useSignal<unknown>(undefined);

  const mute = async () => {
    const choice = choices[chosen.value];
    if (!choice) {
      return;
    }
    busy.value = true;
    const days = EXPIRIES.find(([key]) => key === expiry.value)?.[1] ?? null;
    const wanted: Mute = days === null ? choice.mute : { ...choice.mute, expireTime: timestamp(Date.now() + days * 86_400_000) };
    const target = everywhere.value ? parent(parent(scan.name)) : parent(scan.name);
    try {
      await muteIn(target, { mute: wanted, words: choice.words });
      onClose();
    } catch (error) {
      failed.value = error;
    } finally {
      busy.value = false;
    }
  };

  return (
    <Dialog title={w.mute.title} onClose={onClose}>
      <form noValidate onSubmit={(event) => { event.preventDefault(); void mute(); }}>
        <div class="body">
          <p class="faint"><bdi dir="auto">{headline(scan.post)}</bdi></p>
          <fieldset>
            <legend>{w.mute.what}</legend>
            {choices.map((choice, at) => (
              <label class="choice" key={choice.words}>
                <input type="radio" name="mute" autofocus={at === 0} checked={chosen.value === at} onChange={() => { chosen.value = at; }} /> <bdi dir="auto">{choice.words}</bdi>
              </label>
            ))}
          </fieldset>
          <fieldset>
            <legend>{w.mute.howLong}</legend>
            {EXPIRIES.map(([key]) => (
              <label class="choice" key={key}>
                <input type="radio" name="expiry" checked={expiry.value === key} onChange={() => { expiry.value = key; }} /> {w.mute.expiries[key]}
              </label>
            ))}
          </fieldset>
          <label class="choice"><input type="checkbox" checked={everywhere.value} onChange={(event) => { everywhere.value = event.currentTarget.checked; }} /> {w.mute.everywhere(namespace?.nickname)}</label>
          <p class="hint">{w.mute.means}</p>
          {failed.value !== undefined && <Failed error={failed.value} />}
        </div>
        <footer><button type="button" onClick={onClose}>{w.cancel}</button><button type="submit" class="primary" disabled={busy.value}>{w.mute.mute}</button></footer>
      </form>
    </Dialog>
  );
}

/** Reads what is there now, so that nobody else's mute is lost but by a hair. */
export async function setMutes(target: string, edit: (mutes: Mute[]) => Mute[]): Promise<Mute[]> {
  const isManager = target.includes("/managers/");
  const present = (isManager ? await api.manager(target, {}) : await api.namespace(target, {})).mutes ?? [];
  const mutes = edit(present);
  const saved = isManager ? await api.updateManager(target, { mutes }) : await api.updateNamespace(target, { mutes });
  return saved.mutes ?? [];
}
