ALTER TABLE manager_notices DROP COLUMN filter;
