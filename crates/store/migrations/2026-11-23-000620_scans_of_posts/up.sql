-- Finds the Scans of old posts. Retention asks for them before it drops a week of posts; without an index it read every
-- Scan that stays, and failed at the statement's time limit from some ten million Scans on. Scans are inserted in about
-- the order of their posts, so a block range index of a few pages answers. Building it reads all Scans once.
CREATE INDEX scans_post_receive_time_idx ON scans USING brin (post_receive_time) WITH (pages_per_range = 32, autosummarize = on);
