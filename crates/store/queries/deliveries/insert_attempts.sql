-- $1 uuid[]: deliveries
-- $2 integer[]: number
-- $3 timestamptz[]: time
-- $4 smallint[]: status_code
-- $5 text[]: error
-- $6 integer[]: latency_ms
-- $7 integer[]: dns_ms
-- $8 integer[]: connect_ms
-- $9 integer[]: tls_ms
-- $10 integer[]: first_byte_ms
-- $11 text[]: address
-- $12 text[]: response_body
INSERT INTO delivery_attempts (delivery_id, number, time, status_code, error, latency_ms, dns_ms,
    connect_ms, tls_ms, first_byte_ms, address, response_body)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING
