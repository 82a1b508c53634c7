-- $1 uuid[]: ids
-- $2 timestamptz[]: receive_time of each
UPDATE posts AS p SET title = left(title, 0), text = left(text, 0), user_id = '', user_name = '', user_url = '',
    erase_time = clock_timestamp()
FROM unnest($1, $2) AS given (id, receive_time)
WHERE p.receive_time = given.receive_time AND p.id = given.id AND p.erase_time IS NULL
