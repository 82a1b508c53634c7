-- $1 text: platform
INSERT INTO rechecks (platform) VALUES ($1) ON CONFLICT DO NOTHING
