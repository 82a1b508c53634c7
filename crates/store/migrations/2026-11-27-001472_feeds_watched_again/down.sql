ALTER TABLE feeds DROP COLUMN rewatch_time;
