-- Sealed addresses cannot be opened here: going back would lose them.
DO $$
BEGIN
    IF EXISTS (SELECT FROM connections WHERE url = '') THEN
        RAISE EXCEPTION 'addresses of connections are sealed, and only the release that sealed them can open them';
    END IF;
END
$$;
ALTER TABLE connections DROP COLUMN url_sealed;
COMMENT ON COLUMN connections.url IS NULL;
