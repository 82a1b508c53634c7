-- Which compiler has taken up a Manager that waits in PENDING_APPLY. Written by the compiler alone. The columns are
-- new and null, so no row is rewritten.
ALTER TABLE managers ADD COLUMN compiled_by uuid, ADD COLUMN compiled_generation bigint;
COMMENT ON COLUMN managers.compiled_by IS 'the replica that compiles the Manager; void when its heartbeat has ended';
COMMENT ON COLUMN managers.compiled_generation IS 'the generation that compiled_by has taken up; others may be taken up';
