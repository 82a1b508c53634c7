// Spans of time that statistics are asked for, and sums over their points.
import type { Interval, Point } from "../api/types";

export type Range = "1h" | "24h" | "7d" | "30d";
export const RANGES: Range[] = ["1h", "24h", "7d", "30d"];

const SIZES: Record<Interval, number> = { "1m": 60_000, "1h": 3_600_000, "1d": 86_400_000 };
const SHAPES: Record<Range, { interval: Interval; points: number }> = {
  "1h": { interval: "1m", points: 60 },
  "24h": { interval: "1h", points: 24 },
  "7d": { interval: "1h", points: 168 },
  "30d": { interval: "1d", points: 30 },
};

export function isRange(text: string | null): text is Range {
  return RANGES.includes(text as Range);
}

/** The span and the one before it, by whole intervals, the present one included. */
export function twice(range: Range): { startTime: string; interval: Interval } {
  const { interval, points } = SHAPES[range];
  const size = SIZES[interval];
  const end = Math.floor(Date.now() / size) * size + size;
  return { startTime: new Date(end - 2 * points * size).toISOString(), interval };
}

export function once(range: Range): { startTime: string; interval: Interval } {
  const { interval, points } = SHAPES[range];
  const size = SIZES[interval];
  return { startTime: new Date(Math.floor(Date.now() / size) * size + size - points * size).toISOString(), interval };
}

/** The points before, and those of the span. */
export function halves(points: Point[], range: Range): { before: Point[]; now: Point[] } {
  const cut = Math.max(0, points.length - SHAPES[range].points);
  return { before: points.slice(0, cut), now: points.slice(cut) };
}

export function sum(points: Point[], of: (point: Point) => number | undefined): number {
  return points.reduce((total, point) => total + (of(point) ?? 0), 0);
}

/** Null where nothing was measured: a gap in the line, not a zero. */
export function measured(value: number | undefined): number | null {
  return value === undefined || value === 0 ? null : value;
}
