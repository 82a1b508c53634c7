DROP TABLE feed_gaps;
DROP TABLE feed_days;
