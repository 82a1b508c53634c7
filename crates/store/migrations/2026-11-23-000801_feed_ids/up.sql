-- Account of the ids of feeds whose platform numbers its items without gaps. Columns with constant defaults: no row is
-- rewritten.
ALTER TABLE feed_days
    ADD COLUMN ids_read bigint NOT NULL DEFAULT 0,
    ADD COLUMN ids_other bigint NOT NULL DEFAULT 0,
    ADD COLUMN ids_gone bigint NOT NULL DEFAULT 0,
    ADD COLUMN ids_up_to bigint;
COMMENT ON COLUMN feed_days.ids_read IS 'ids whose posts were read, counted on the day on which they were checked';
COMMENT ON COLUMN feed_days.ids_other IS 'ids of items that the feed does not have, such as comments';
COMMENT ON COLUMN feed_days.ids_gone IS 'ids of deleted and dead items';
COMMENT ON COLUMN feed_days.ids_up_to IS 'every id up to this one was accounted for or missing; NULL where the feed has no such ids';

-- Ids without an item on their platform. Written with feed_days, and deleted when the id is explained.
CREATE TABLE feed_missing_ids (
    feed text NOT NULL,
    id bigint NOT NULL,
    miss_time timestamptz NOT NULL,
    CONSTRAINT feed_missing_ids_pkey PRIMARY KEY (feed, id)
);
COMMENT ON COLUMN feed_missing_ids.miss_time IS 'when the id was first found missing';
