// `test` with retries and a time limit. A test that passes at a later attempt counts as passed, and is reported at the
// end of the run: `FLAKY <name>: <first error>`. Each attempt gets its number, for names that must be new, and what it
// opened is closed before the next one.
import { AsyncLocalStorage } from "node:async_hooks";
import { after, describe, test as single } from "node:test";

const ATTEMPTS = 3;
/** It only ends a test that hangs; a busy machine must not reach it. */
const LIMIT_MS = 600_000;
const attempts = new AsyncLocalStorage();
const flaky = [];

export { describe };

/** Closes something at the end of the attempt in which it was opened, if the test has not done so. */
export function closeAtEnd(close) {
  attempts.getStore()?.opened.push(close);
}

export function test(name, run) {
  single(name, async () => {
    const errors = [];
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const error = await failure(run, attempt);
      if (error === undefined) {
        if (errors.length > 0) {
          flaky.push(`${name}: ${first(errors[0])}`);
        }
        return;
      }
      console.log(`attempt ${attempt + 1} of "${name}" failed: ${error?.stack ?? error}`);
      errors.push(error);
    }
    throw errors[0];
  });
}

/** Returns the error of an attempt; undefined if it succeeds. */
async function failure(run, attempt) {
  const opened = [];
  let timer;
  const limit = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not done after ${LIMIT_MS / 1000} s`)), LIMIT_MS); });
  try {
    await Promise.race([attempts.run({ opened }, () => run({ attempt })), limit]);
    return undefined;
  } catch (error) {
    return error ?? new Error("failed without an error");
  } finally {
    clearTimeout(timer);
    for (const close of opened.reverse()) {
      await Promise.resolve(close()).catch(() => undefined);
    }
  }
}

const first = (error) => String(error?.message ?? error).split("\n").find((line) => line.trim() !== "") ?? "";

after(() => {
  for (const line of flaky) {
    console.log(`FLAKY ${line}`);
  }
});
