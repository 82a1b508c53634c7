-- $1 double precision: seconds after which no delivery is tried any more
DELETE FROM mail_receipts WHERE time < clock_timestamp() - $1 * interval '1 second'
