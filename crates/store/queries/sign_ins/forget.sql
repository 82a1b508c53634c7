-- $1 text: name or subject of the person; NULL for all
-- $2 text: name of the account; NULL for all
DELETE FROM sign_ins WHERE sealed IS NULL AND (
    -- The provider has not named the person yet.
    person IS NULL
    OR ($1 IS NULL OR $1 IN (person, subject))
    AND ($2 IS NULL OR account_id = (SELECT id FROM accounts WHERE name = $2)))
