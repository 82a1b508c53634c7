ALTER TABLE deliveries DROP CONSTRAINT deliveries_subject_check;
DELETE FROM deliveries WHERE event IS NOT NULL;
ALTER TABLE deliveries ALTER COLUMN scan_id SET NOT NULL;
ALTER TABLE deliveries ALTER COLUMN manager_id SET NOT NULL;
ALTER TABLE deliveries DROP COLUMN event;
ALTER TABLE connections DROP COLUMN events;
DROP TABLE service_events;
