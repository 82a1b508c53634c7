-- $1 uuid: namespace
SELECT count(*) AS count FROM connections WHERE namespace_id = $1 AND events <> '{}'
