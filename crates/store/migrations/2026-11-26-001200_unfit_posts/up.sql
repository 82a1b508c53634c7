-- Entries that are empty or dated far back are told from those that cannot be read. The rows satisfy the narrower rule.
ALTER TABLE quarantined_posts
    DROP CONSTRAINT quarantined_posts_kind_check,
    ADD CONSTRAINT quarantined_posts_kind_check CHECK (kind IN ('UNREADABLE', 'REFUSED', 'UNFIT')) NOT VALID;
