-- When the compiler looks at an applied Manager again: its pages change, and its customer judges Scans.
-- Written by the compiler alone.
ALTER TABLE managers ADD COLUMN recompile_after timestamptz;
COMMENT ON COLUMN managers.recompile_after IS
    'not to be compiled again before: a lease while a compiler is at it, and the pause after pages that did not answer';
CREATE INDEX managers_recompile_idx ON managers (apply_time) WHERE state = 'APPLIED' AND mode = 'AUTOMATIC';
-- A Scan changes after its making by its customer alone.
CREATE INDEX scans_judged_idx ON scans (update_time) WHERE update_time > create_time;
