-- What customers keep out of their Scans, whatever the instructions say: mutes of a Namespace or of one
-- Manager, languages, and a bound on a day's Scans. Written by the gateway, read by scanners; a compile
-- touches none of it.
ALTER TABLE namespaces
    ADD COLUMN mutes jsonb NOT NULL DEFAULT '[]'
        CONSTRAINT namespaces_mutes_check CHECK (jsonb_typeof(mutes) = 'array' AND jsonb_array_length(mutes) <= 200);
COMMENT ON COLUMN namespaces.mutes IS 'of domain::screen::Mute; for all its Managers, beside their own';
-- For a scanner's first look: few Namespaces mute anything.
CREATE INDEX namespaces_muting_idx ON namespaces (id) WHERE mutes <> '[]';

ALTER TABLE managers
    ADD COLUMN mutes jsonb NOT NULL DEFAULT '[]'
        CONSTRAINT managers_mutes_check CHECK (jsonb_typeof(mutes) = 'array' AND jsonb_array_length(mutes) <= 200),
    ADD COLUMN languages text[] NOT NULL DEFAULT '{}'
        CONSTRAINT managers_languages_check CHECK (cardinality(languages) <= 20),
    ADD COLUMN max_scans_per_day integer
        CONSTRAINT managers_max_scans_per_day_check CHECK (max_scans_per_day > 0);
COMMENT ON COLUMN managers.mutes IS 'of domain::screen::Mute';
COMMENT ON COLUMN managers.languages IS 'ISO 639-1 codes; empty is all';
