-- $1 uuid: id
-- $2 uuid: namespace
-- $3 uuid: Connection
-- $4 bigint: most unanswered tests of an account
-- $5 double precision: seconds until no one waits
INSERT INTO connection_tests (id, namespace_id, connection_id, create_time)
SELECT $1, $2, $3, clock_timestamp()
WHERE $4 > (
    SELECT count(*) FROM connection_tests AS t JOIN namespaces AS n ON n.id = t.namespace_id
    WHERE n.account_id = (SELECT account_id FROM namespaces WHERE id = $2) AND t.answer IS NULL
        AND t.create_time > clock_timestamp() - $5 * interval '1 second')
