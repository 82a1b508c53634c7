-- $1 text[]: events
-- $2 uuid[]: message_id
-- $3 bytea[]: payload
-- $4 text[]: traceparent
-- $5 text[]: tracestate
INSERT INTO outbox (event, message_id, payload, traceparent, tracestate)
SELECT * FROM unnest($1, $2, $3, $4, $5)
