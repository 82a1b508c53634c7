// What came of a sample event.
import type { TestResult } from "../api/types";
import { w } from "../words/en";
import { State } from "./basics";
import { duration } from "./time";

export function TestAnswer({ result }: { result: TestResult }) {
  return (
    <div class={result.ok ? "notice good" : "notice bad"}>
      <p>
        <State tone={result.ok ? "good" : "bad"}>{result.ok ? w.test.ok : w.test.failed}</State>{" "}
        {result.statusCode !== undefined && w.test.answered(result.statusCode)} {w.test.within(duration(result.latencyMs))}
      </p>
      {result.error && <p>{result.error}</p>}
    </div>
  );
}
