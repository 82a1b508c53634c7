ALTER TABLE plan_changes DROP COLUMN nonce;
