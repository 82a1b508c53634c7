ALTER TABLE backfills DROP COLUMN traceparent;
ALTER TABLE deliveries DROP COLUMN traceparent;
