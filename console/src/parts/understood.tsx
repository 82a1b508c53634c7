// Instructions as people read them: the brief, terms by weight, groups as sentences.
import type { Instructions, Mute } from "../api/types";
import { w } from "../words/en";
import { Foreign } from "./basics";
import { shownScore } from "./marked";

const SHOWN_TERMS = 60;

interface Props {
  instructions: Instructions;
  /** Of a Manager, what its customer keeps out beside the instructions, and where that is set. */
  mutes?: Mute[];
  settings?: string;
}

export function Understood({ instructions, mutes, settings }: Props) {
  const include = [...(instructions.include ?? [])].sort((a, b) => b.weight - a.weight);
  return (
    <div class="understood">
      {instructions.brief && <blockquote class="brief"><Foreign>{instructions.brief}</Foreign></blockquote>}
      <dl class="facts">
        {instructions.sells && <><dt>{w.looks.sells}</dt><dd>{instructions.sells.summary && <p><Foreign>{instructions.sells.summary}</Foreign></p>}<div class="chips">{(instructions.sells.offers ?? []).map((offer) => <span class="chip" key={offer}><Foreign>{offer}</Foreign></span>)}</div></dd></>}
        {(instructions.require ?? []).length > 0 && <><dt>{w.looks.must}</dt><dd>{(instructions.require ?? []).map((group, at) => <p key={at}>{w.looks.mustMention} <Group words={group} /></p>)}</dd></>}
        {include.length > 0 && <><dt>{w.looks.terms}</dt><dd class="chips">{include.slice(0, SHOWN_TERMS).map((term) => <Weighted key={term.text} text={term.text} weight={term.weight} />)}{include.length > SHOWN_TERMS && <span class="faint">{w.looks.moreTerms(include.length - SHOWN_TERMS)}</span>}</dd></>}
        {(instructions.names ?? []).length > 0 && (
          <>
            <dt>{w.looks.names}</dt>
            <dd class="chips">
              {(instructions.names ?? []).map((name) => (
                <span class="chip" key={name.text} title={[...(name.aliases ?? []), ...(name.context ?? []).map((word) => `${w.looks.near} ${word}`)].join(", ")}>
                  <Foreign>{name.text}</Foreign> <span class="faint small">{w.looks.nameKinds[name.kind]}</span>
                </span>
              ))}
            </dd>
          </>
        )}
        {(instructions.exclude ?? []).length > 0 && <><dt>{w.looks.exclude}</dt><dd class="chips">{(instructions.exclude ?? []).map((term) => <span class="chip" key={term}><Foreign>{term}</Foreign></span>)}</dd></>}
        <dt>{w.looks.threshold}</dt>
        <dd>{instructions.threshold === undefined ? "–" : shownScore(instructions.threshold)} <span class="faint">{instructions.focus ? w.looks.calibrated : w.looks.summed}</span></dd>
        <dt>{w.looks.feeds}</dt>
        <dd class="chips">{(instructions.feeds ?? []).map((feed) => <span class="chip mono" key={feed}>{feed}</span>)}</dd>
        {mutes && (
          <>
            <dt>{w.looks.mutes}</dt>
            <dd class="chips">
              {mutes.map((mute) => <span class="chip" key={mute.type + mute.value}><span class="faint small">{w.mute.types[mute.type]}</span> <Foreign>{mute.value}</Foreign></span>)}
              {mutes.length === 0 && <span class="faint">{w.settings.noMutes}</span>} <a href={settings}>{w.looks.change}</a>
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}

function Group({ words }: { words: string[] }) {
  return <>{words.map((word, at) => <span key={word}>{at > 0 && ` ${w.or} `}<strong><Foreign>{word}</Foreign></strong></span>)}</>;
}

export function Weighted({ text, weight }: { text: string; weight: number }) {
  return <span class={weight < 0 ? "chip against" : "chip"}><Foreign>{text}</Foreign> <span class="weight">{weight > 0 ? "+" : ""}{shownScore(weight)}</span></span>;
}
