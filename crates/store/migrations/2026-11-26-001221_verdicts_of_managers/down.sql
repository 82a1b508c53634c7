ALTER TABLE managers DROP COLUMN recompile_failures;
DROP TABLE manager_verdicts;
