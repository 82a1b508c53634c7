DROP TABLE mail_receipts;
DROP TABLE mail_addresses;
DROP TABLE mail_recipients;
UPDATE connections SET format = 'EARSHOT', state = 'DISABLED', state_reason = 'e-mail is not supported' WHERE format = 'EMAIL';
ALTER TABLE connections
    DROP CONSTRAINT connections_format_check,
    ADD CONSTRAINT connections_format_check CHECK (format IN ('EARSHOT', 'SLACK', 'DISCORD', 'TEAMS'));
