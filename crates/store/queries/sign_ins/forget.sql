-- $1 text: name or subject of the person
DELETE FROM sign_ins WHERE $1 IN (person, subject)
