-- $1 bigint: most recipients
-- $2 bigint: most requests of an account in a day
WITH waiting AS (
    SELECT r.namespace_id, r.connection_id, r.address_digest, r.update_time, n.account_id
    FROM mail_recipients AS r JOIN namespaces AS n ON n.id = r.namespace_id
    WHERE r.state = 'PENDING' AND r.ask_time IS NULL
        AND NOT EXISTS (SELECT FROM mail_addresses AS a WHERE a.address_digest = r.address_digest
            AND a.ask_time > clock_timestamp() - interval '1 day')
        -- Neither who refused another Connection of the account, nor who has not answered yet.
        AND NOT EXISTS (SELECT FROM account_mail_addresses AS o
            WHERE o.account_id = n.account_id AND o.address_digest = r.address_digest
                AND (o.refuse_time IS NOT NULL OR o.ask_time > clock_timestamp() - interval '30 days'))
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY account_id ORDER BY update_time) AS rank FROM waiting
), chosen AS (
    -- An address may wait for several Connections.
    SELECT DISTINCT ON (address_digest) r.* FROM ranked AS r
    WHERE r.rank + (SELECT count(*) FROM mail_addresses AS a
        WHERE a.account_id = r.account_id AND a.ask_time > clock_timestamp() - interval '1 day') <= $2
    ORDER BY address_digest, update_time
), marked AS (
    INSERT INTO mail_addresses AS a (address_digest, account_id, ask_time)
    SELECT address_digest, account_id, clock_timestamp() FROM (
        SELECT * FROM chosen ORDER BY rank, update_time LIMIT $1
    ) AS first ORDER BY address_digest
    ON CONFLICT (address_digest) DO UPDATE SET account_id = excluded.account_id, ask_time = excluded.ask_time
        WHERE a.ask_time <= clock_timestamp() - interval '1 day'
    RETURNING address_digest
)
SELECT c.namespace_id, c.connection_id, c.address_digest FROM chosen AS c JOIN marked AS m USING (address_digest)
