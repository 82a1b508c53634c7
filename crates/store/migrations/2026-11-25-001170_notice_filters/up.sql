-- A condition on Scans in the grammar of lists; NULL delivers all of them.
ALTER TABLE manager_notices ADD COLUMN filter text;
