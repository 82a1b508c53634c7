-- The addresses of Connections are secrets: who knows the one of a Slack, Discord or Teams hook can post there. The
-- gateway seals what it writes; `earshot reseal` seals what was written before, once no process of the release before
-- is left, which reads `url` alone. A later release drops `url`.
ALTER TABLE connections ADD COLUMN url_sealed bytea;
COMMENT ON COLUMN connections.url IS
    'the address in the clear, of rows that the release before wrote, and then it counts; empty where it is sealed';
COMMENT ON COLUMN connections.url_sealed IS 'the address, sealed as the headers are; counts where url is empty';
