-- What a Connection may say of how it is sent to: how fast, signed by what, in which shape. Written by
-- the gateway, read by the dispatcher with each delivery.
ALTER TABLE connections
    ADD COLUMN max_per_second integer
        CONSTRAINT connections_max_per_second_check CHECK (max_per_second BETWEEN 1 AND 10000),
    ADD COLUMN signing_secrets_sealed bytea,
    ADD COLUMN format text NOT NULL DEFAULT 'EARSHOT'
        CONSTRAINT connections_format_check CHECK (format IN ('EARSHOT', 'SLACK', 'DISCORD', 'TEAMS'));
COMMENT ON COLUMN connections.signing_secrets_sealed IS
    'the signing secrets as a JSON array, sealed as the headers are; NULL when there are none';
