-- What led to a piece of work that waits in the database, as a W3C traceparent: the fan-out of a delivery, the
-- request or apply of a backfill. Written by the dispatcher, the gateway and the compiler, only while it is traced.
ALTER TABLE deliveries ADD COLUMN traceparent text;
ALTER TABLE backfills ADD COLUMN traceparent text;

COMMENT ON COLUMN deliveries.traceparent IS 'the span that made it, where that is traced: the first attempt goes on with it, later ones are linked to it';
COMMENT ON COLUMN backfills.traceparent IS 'the span that asked for it, where that is traced';
