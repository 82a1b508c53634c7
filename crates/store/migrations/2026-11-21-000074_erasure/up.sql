-- Posts that were deleted at their source lose what their author wrote; Scans keep the post's id and
-- address. Written by the scanner, when a platform tells, or when a re-check finds it.
ALTER TABLE posts ADD COLUMN erase_time timestamptz;
COMMENT ON COLUMN posts.erase_time IS 'when title, text and author were blanked, for the post is gone at its source';

-- How far the re-check of a platform's posts has come. One row a platform that is re-checked.
CREATE TABLE rechecks (
    platform text CONSTRAINT rechecks_pkey PRIMARY KEY,
    stage text NOT NULL DEFAULT 'POSTS' CONSTRAINT rechecks_stage_check CHECK (stage IN ('POSTS', 'RECENT')),
    place_time timestamptz NOT NULL DEFAULT 'epoch',
    place_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    begin_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    next_time timestamptz NOT NULL DEFAULT clock_timestamp(),
    leased_by uuid
);
COMMENT ON COLUMN rechecks.stage IS 'which table is walked: posts first, then recent_posts';
COMMENT ON COLUMN rechecks.place_time IS 'with place_id the last row that was looked at';
