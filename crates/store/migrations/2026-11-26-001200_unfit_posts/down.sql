UPDATE quarantined_posts SET kind = 'UNREADABLE' WHERE kind = 'UNFIT';
ALTER TABLE quarantined_posts
    DROP CONSTRAINT quarantined_posts_kind_check,
    ADD CONSTRAINT quarantined_posts_kind_check CHECK (kind IN ('UNREADABLE', 'REFUSED'));
