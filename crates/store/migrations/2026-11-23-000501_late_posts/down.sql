ALTER TABLE feeds DROP COLUMN late_time;
