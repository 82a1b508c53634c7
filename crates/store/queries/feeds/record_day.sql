-- $1 text: feed
-- $2 bigint: posts
-- $3 bigint: late
-- $4 bigint: gone
-- $5 bigint: quarantined
-- $6 bigint: gaps
-- $7 bigint: ids_read
-- $8 bigint: ids_other
-- $9 bigint: ids_gone
-- $10 bigint: ids_up_to, or NULL to keep it
INSERT INTO feed_days (feed, day, posts, late, gone, quarantined, gaps, ids_read, ids_other, ids_gone, ids_up_to)
VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (feed, day) DO UPDATE SET posts = feed_days.posts + excluded.posts,
    late = feed_days.late + excluded.late, gone = feed_days.gone + excluded.gone,
    quarantined = feed_days.quarantined + excluded.quarantined,
    gaps = feed_days.gaps + excluded.gaps, ids_read = feed_days.ids_read + excluded.ids_read,
    ids_other = feed_days.ids_other + excluded.ids_other,
    ids_gone = feed_days.ids_gone + excluded.ids_gone,
    ids_up_to = coalesce(excluded.ids_up_to, feed_days.ids_up_to)
