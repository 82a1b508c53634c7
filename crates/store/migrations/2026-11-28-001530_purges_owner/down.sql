ALTER TABLE purges DROP COLUMN owner_id;
