-- A Namespace that is deleted no longer shows whose it was, but accounts share purges. Written with the row, by the gateway.
-- Not `account_id`: the release before selects all columns of `purges` next to one of this name.
ALTER TABLE purges ADD COLUMN owner_id uuid;
COMMENT ON COLUMN purges.owner_id IS 'account of the Namespace; NULL for rows from before the column';
