-- $1 uuid: id
SELECT end_session($1) AS ended
