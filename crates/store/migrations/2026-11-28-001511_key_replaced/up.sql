-- A key is rotated once: `earshot keys rotate` refuses a key whose successor still works.
ALTER TABLE api_keys ADD COLUMN replaced_by uuid;
COMMENT ON COLUMN api_keys.replaced_by IS 'the key that `earshot keys rotate` made in its place';
