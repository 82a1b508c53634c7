ALTER TABLE managers DROP COLUMN compiled_generation, DROP COLUMN compiled_by;
