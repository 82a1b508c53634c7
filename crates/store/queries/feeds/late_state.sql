-- $1 text: name
SELECT late_reading AS reading, least(kept_since, ids_since) AS known_since FROM feeds WHERE name = $1
