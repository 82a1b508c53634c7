// Charts: a figure with a sentence that says what it shows, and the same figures as a table.
//
// Drawn as SVG, so that the sheet's tokens colour them in both themes. Series differ by dashes and shapes too, not by
// colour alone. Pointing at a moment says its figures where the sentence stands.
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Interval } from "../api/types";
import { w } from "../words/en";
import { axisTick, tick } from "./time";

export interface Series {
  label: string;
  /** A class of the sheet. */
  colour: "accent" | "muted" | "warn" | "bad";
  dash?: string;
  fill?: boolean;
  /** Bars stand upon those of the series before. */
  bars?: boolean;
  /** Null is a gap. */
  values: (number | null)[];
  /** Against a scale of its own, at the right. */
  right?: boolean;
}

interface Props {
  title: string;
  sentence: string;
  interval: Interval;
  times: string[];
  series: Series[];
  format: (value: number) => string;
}

const HEIGHT = 176;
const TOP = 8;
const BOTTOM = 22;
/** Of a figure beside the axis. */
const DIGIT_WIDTH = 6.6;
const TICK_WIDTH = 76;
const MAX_BAR = 22;

/** The end of a scale, and its steps: round numbers, about four. */
export function scale(most: number): { end: number; steps: number[] } {
  const rough = Math.max(1, most) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 2.5, 5, 10].map((one) => one * power).filter((one) => Number.isInteger(one));
  const step = Math.max(1, round.find((one) => one >= rough) ?? rough);
  const count = Math.max(1, Math.ceil(Math.max(1, most) / step));
  return { end: count * step, steps: Array.from({ length: count + 1 }, (_, at) => at * step) };
}

export function Chart({ title, sentence, interval, times, series, format }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const at = useSignal<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) {
      return undefined;
    }
    const resized = new ResizeObserver(() => { width.value = element.clientWidth; });
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const pointed = at.value === null ? undefined : times[at.value];
  const says = pointed === undefined
    ? sentence
    : `${tick(pointed, interval)}: ${series.map((one) => `${one.label} ${shown(one.values[at.value ?? 0], format)}`).join(" · ")}`;

  return (
    <figure class="chart">
      <figcaption><h2>{title}</h2><p class="chart-says">{says}</p></figcaption>
      <p class="legend">
        {series.map((one) => (
          <span key={one.label}>
            <svg width="18" height="10" aria-hidden="true">
              {one.bars
                ? <g class={`bars ${one.colour}`}><rect x="4.5" y="0.5" width="9" height="9" rx="1" /></g>
                : <line class={`line ${one.colour}`} x1="1" x2="17" y1="5" y2="5" stroke-dasharray={one.dash} />}
            </svg>
            {one.label}
          </span>
        ))}
      </p>
      <div class="canvas" ref={place} aria-hidden="true">
        {width.value > 0 && times.length > 0 && <Drawing width={width.value} interval={interval} times={times} series={series} format={format} at={at.value} point={(index) => { at.value = index; }} />}
      </div>
      <details class="as-table">
        <summary>{w.chart.asTable}</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table>
            <thead><tr><th scope="col">{w.chart.time}</th>{series.map((one) => <th scope="col" class="num" key={one.label}>{one.label}</th>)}</tr></thead>
            <tbody>
              {times.map((time, index) => (
                <tr key={time}><th scope="row">{tick(time, interval)}</th>{series.map((one) => <td class="num" key={one.label}>{shown(one.values[index], format)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

const MINUTES = [5, 10, 15, 30];
const HOURS = [1, 2, 3, 6, 12, 24, 48, 96];
const DAYS = [1, 2, 3, 5, 7, 10];

/** Which points get a word on the axis: round minutes, hours or days of the reader's clock, `apart` points from each other. */
export function roundTimes(times: string[], interval: Interval, apart: number): number[] {
  const steps = { "1m": MINUTES, "1h": HOURS, "1d": DAYS }[interval];
  const step = steps.find((one) => one >= apart) ?? steps.at(-1) ?? 1;
  return times.flatMap((time, index) => {
    const date = new Date(time);
    const at = interval === "1m" ? date.getMinutes() : interval === "1d" ? times.length - 1 - index
      : date.getHours() + (step > 24 ? 24 * Math.floor((date.getTime() - date.getTimezoneOffset() * 60_000) / 86_400_000) : 0);
    return at % step === 0 ? [index] : [];
  });
}

type DrawingProps = Omit<Props, "title" | "sentence"> & { width: number; at: number | null; point: (index: number | null) => void };

function Drawing({ width, interval, times, series, format, at, point }: DrawingProps) {
  const below = (one: Series, index: number) => {
    const bars = series.slice(0, series.indexOf(one)).filter((other) => other.bars && other.right === one.right);
    return bars.reduce((total, other) => total + (other.values[index] ?? 0), 0);
  };
  const most = (right: boolean) => Math.max(0, ...series.filter((one) => (one.right ?? false) === right).flatMap((one) => one.values.map((value, index) => (value ?? 0) + (one.bars ? below(one, index) : 0))));
  const hasRight = series.some((one) => one.right);
  const scales = { left: scale(most(false)), right: scale(most(true)) };
  const beside = (steps: number[]) => 10 + DIGIT_WIDTH * Math.max(...steps.map((step) => format(step).length));
  const inner = { left: beside(scales.left.steps), right: width - (hasRight ? beside(scales.right.steps) : 8), top: TOP, bottom: HEIGHT - BOTTOM };
  const slot = (inner.right - inner.left) / times.length;
  const x = (index: number) => inner.left + (index + 0.5) * slot;
  const y = (value: number, right: boolean) => inner.bottom - (value / (right ? scales.right : scales.left).end) * (inner.bottom - inner.top);
  const ticks = roundTimes(times, interval, TICK_WIDTH / Math.max(1, slot));
  const indexOf = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const index = Math.floor((event.clientX - box.left - inner.left) / slot);
    return index >= 0 && index < times.length ? index : null;
  };
  return (
    <svg width={width} height={HEIGHT} onPointerMove={(event) => point(indexOf(event))} onPointerLeave={() => point(null)}>
      {scales.left.steps.map((step) => (
        <g key={step}>
          <line class="grid" x1={inner.left} x2={inner.right} y1={y(step, false)} y2={y(step, false)} />
          <text x={inner.left - 6} y={y(step, false) + 4} text-anchor="end">{format(step)}</text>
        </g>
      ))}
      {hasRight && scales.right.steps.map((step) => <text key={step} x={inner.right + 6} y={y(step, true) + 4}>{format(step)}</text>)}
      {ticks.map((index) => x(index) < width - 18 && (
        <text key={index} x={x(index)} y={HEIGHT - 5} text-anchor="middle">{axisTick(times[index] ?? "", interval)}</text>
      ))}
      {at !== null && <line class="cursor" x1={x(at)} x2={x(at)} y1={inner.top} y2={inner.bottom} />}
      {series.map((one) => (one.bars
        ? <Bars key={one.label} series={one} x={x} y={y} bar={Math.max(1, Math.min(MAX_BAR, slot * 0.62))} below={(index) => below(one, index)} />
        : <Line key={one.label} series={one} x={x} y={y} floor={inner.bottom} />))}
    </svg>
  );
}

interface Marks {
  series: Series;
  x: (index: number) => number;
  y: (value: number, right: boolean) => number;
  floor: number;
}

/** One of a few among thousands is a pixel high: it is not to be missed. */
function Bars({ series, x, y, bar, below }: Omit<Marks, "floor"> & { bar: number; below: (index: number) => number }) {
  return (
    <g class={`bars ${series.colour}`}>
      {series.values.map((value, index) => {
        if (value === null || value === 0) {
          return null;
        }
        const foot = y(below(index), series.right ?? false);
        const height = Math.max(1.5, foot - y(below(index) + value, series.right ?? false));
        return <rect key={index} x={x(index) - bar / 2} y={foot - height} width={bar} height={height} rx={Math.min(1.5, bar / 3)} />;
      })}
    </g>
  );
}

function Line({ series, x, y, floor }: Marks) {
  if (series.values.every((value) => !value)) {
    return null; // A line along the floor says nothing, and hides others.
  }
  // Along the floor a line hides others and says nothing: it comes down to it and leaves it, no more.
  const silent = (index: number) => !series.fill && series.values[index] === 0 && !series.values[index - 1] && !series.values[index + 1];
  // Runs without a gap; one of a single point is a dot.
  const runs: [number, number][][] = [];
  series.values.forEach((value, index) => {
    if (value === null || silent(index)) {
      return;
    }
    const at: [number, number] = [x(index), y(value, series.right ?? false)];
    const follows = index > 0 && series.values[index - 1] !== null && !silent(index - 1) && runs.length > 0;
    if (follows) {
      runs.at(-1)?.push(at);
    } else {
      runs.push([at]);
    }
  });
  const path = (run: [number, number][]) => run.map(([px, py], at) => `${at === 0 ? "M" : "L"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
  return (
    <g>
      {series.fill && runs.map((run, at) => <path key={at} class={`area ${series.colour}`} d={`${path(run)}L${run.at(-1)?.[0].toFixed(1)} ${floor}L${run[0]?.[0].toFixed(1)} ${floor}Z`} />)}
      {runs.map((run, at) => (run.length === 1
        ? <circle key={at} class={`dot ${series.colour}`} cx={run[0]?.[0]} cy={run[0]?.[1]} r="2.5" />
        : <path key={at} class={`line ${series.colour}`} d={path(run)} stroke-dasharray={series.dash} />))}
    </g>
  );
}

function shown(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? "–" : format(value);
}
