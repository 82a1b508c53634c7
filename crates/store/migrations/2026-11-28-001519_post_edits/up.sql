-- Which text of an edited post its Connections were told of (ADR 0071). `posts.text` stays as it was matched, because Scans
-- refer to places in it.
ALTER TABLE posts ADD COLUMN edit_digest bytea;
COMMENT ON COLUMN posts.edit_digest IS 'digest of the text at its source, once it was found edited; NULL while it is posts.text';
