-- What kinds of posts a Manager hears, and what becomes of a post that says what an earlier one said. Written
-- by the gateway; `kinds` is read by the compiler, `duplicates` by scanners.
ALTER TABLE managers
    ADD COLUMN kinds text[] NOT NULL DEFAULT '{POST}'
        CONSTRAINT managers_kinds_check CHECK (cardinality(kinds) BETWEEN 1 AND 10),
    ADD COLUMN duplicates text NOT NULL DEFAULT 'KEEP'
        CONSTRAINT managers_duplicates_check CHECK (duplicates IN ('KEEP', 'COLLAPSE'));

ALTER TABLE scans ADD COLUMN places jsonb NOT NULL DEFAULT '[]';
COMMENT ON COLUMN scans.places IS 'of domain::Place: where the same was found again';

-- By what a later post is found to say the same as a Scan's: some ten rows a Scan, of Managers that
-- collapse duplicates alone, for seven days. Written by scanners, who hold the Manager's clock meanwhile.
CREATE TABLE scan_likes (
    namespace_id uuid NOT NULL,
    manager_id uuid NOT NULL,
    key bigint NOT NULL,
    scan_id uuid NOT NULL,
    create_time timestamptz NOT NULL,
    sketch bytea,
    PRIMARY KEY (namespace_id, manager_id, key, scan_id)
);
COMMENT ON COLUMN scan_likes.key IS 'of matching::likeness';
COMMENT ON COLUMN scan_likes.create_time IS 'the Scan''s';
COMMENT ON COLUMN scan_likes.sketch IS 'to be compared; null where the key is of a link, and suffices';
