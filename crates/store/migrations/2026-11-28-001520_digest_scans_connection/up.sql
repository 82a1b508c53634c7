-- A busy Connection has millions of Scans in digests. The transaction that deletes it does not delete them: purges do, in batches.
ALTER TABLE digest_scans DROP CONSTRAINT digest_scans_connection_fkey;
