-- $1 uuid: namespace
-- $2 uuid: Manager
-- $3 text: begin of the note
-- $4 integer: most characters before it
-- $5 text: note
-- In place of the last such note.
UPDATE managers SET instructions = jsonb_set(instructions, '{brief}',
    to_jsonb(left(split_part(coalesce(instructions->>'brief', ''), $3, 1), $4) || $5))
WHERE namespace_id = $1 AND id = $2 AND state = 'APPLIED' AND instructions IS NOT NULL
