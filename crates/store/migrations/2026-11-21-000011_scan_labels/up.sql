-- Words that a customer puts on a Scan. Written by the gateway.
ALTER TABLE scans
    ADD COLUMN labels text[] NOT NULL DEFAULT '{}'
        CONSTRAINT scans_labels_check CHECK (cardinality(labels) <= 10);
