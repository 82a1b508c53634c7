// One Scan for reading: the post, why it was shown, and what one says to it.
import type { ComponentChildren } from "preact";
import type { Manager, Scan } from "../api/types";
import { parent } from "../api/types";
import { mayWrite } from "../session";
import { w } from "../words/en";
import { Foreign, Outside } from "./basics";
import { ObjectMenu } from "./dialog";
import { isJudged, judge, type Put } from "./labels";
import { PostText, Score } from "./marked";
import { pageOf } from "./names";
import { Time } from "./time";

interface Props {
  scan: Scan;
  manager: Manager | undefined;
  put: Put;
  onLabel: () => void;
  onMute: () => void;
  back?: ComponentChildren;
}

export function ScanPane({ scan, manager, put, onLabel, onMute, back }: Props) {
  return (
    <div class="pane-inner">
      <div class="pane-bar">
        {back}
        {mayWrite.value && <Verdict scan={scan} put={put} manager={manager} />}
        <span class="grow" />
        {mayWrite.value && <button type="button" class="roomy" aria-keyshortcuts="l" title={w.scan.byKey("l")} onClick={onLabel}>{w.scan.label}</button>}
        {mayWrite.value && <button type="button" class="roomy" aria-keyshortcuts="m" title={w.scan.byKey("m")} onClick={onMute}>{w.mute.mute}…</button>}
        <ObjectMenu name={scan.name} value={scan} path={scan.name}>
          {mayWrite.value && <button type="button" class="narrow" onClick={onLabel}>{w.scan.label}</button>}
          {mayWrite.value && <button type="button" class="narrow" onClick={onMute}>{w.mute.mute}…</button>}
        </ObjectMenu>
      </div>
      {scan.labels.length > 0 && <p class="labels">{scan.labels.map((label) => <span class="chip" key={label}><Foreign>{label}</Foreign></span>)}</p>}
      <PostText post={scan.post} match={scan.match} />
      <section class="why-box" aria-label={w.scan.why}>
        <h3>{w.scan.why}</h3>
        <Score match={scan.match} threshold={manager?.instructions?.threshold} value />
        {scan.match.terms.length > 0 && (
          <p class="chips">{scan.match.terms.map((term) => <span class="chip" key={term}><Foreign>{term}</Foreign></span>)}</p>
        )}
        <p class="faint small">
          {w.scan.foundBy} <a href={pageOf(parent(scan.name), "looks")}><Foreign>{manager?.nickname ?? w.scan.aManager}</Foreign></a>, <Time iso={scan.createTime} focusable />
        </p>
      </section>
      {(scan.places ?? []).length > 0 && (
        <section aria-label={w.scan.places}>
          <h3>{w.scan.places}</h3>
          <ul class="plain">
            {(scan.places ?? []).map((place) => (
              <li key={place.url}><Outside url={place.url} /> {place.subforum && <Foreign>{place.subforum.name}</Foreign>} <Time iso={place.time} focusable /></li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Verdict({ scan, put, manager }: { scan: Scan; put: Put; manager: Manager | undefined }) {
  return (
    <div class="segments" role="group" aria-label={w.scan.verdict}>
      <button type="button" aria-pressed={scan.value && isJudged(scan)} aria-keyshortcuts="y" title={w.scan.byKey("y")} onClick={() => void judge(scan, true, put, manager)}>✓ {w.scan.right}</button>
      <button type="button" aria-pressed={!scan.value} aria-keyshortcuts="n" title={w.scan.byKey("n")} onClick={() => void judge(scan, false, put, manager)}>✕ {w.scan.wrong}</button>
    </div>
  );
}
