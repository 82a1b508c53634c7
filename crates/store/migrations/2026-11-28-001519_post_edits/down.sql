ALTER TABLE posts DROP COLUMN edit_digest;
