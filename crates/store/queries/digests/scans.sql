-- $1 uuid: id of the delivery
-- $2 bigint: most Scans
-- Without Scans that were deleted since, and those whose posts were. OFFSET makes the planner look up each by its whole key.
SELECT d.namespace_id, d.manager_id, d.scan_id, count(*) OVER () AS total FROM digest_scans AS d
JOIN managers AS m ON m.namespace_id = d.namespace_id AND m.id = d.manager_id
CROSS JOIN LATERAL (
    SELECT s.post_receive_time, s.post_id FROM scans AS s
    WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id
        AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id OFFSET 0
) AS s
CROSS JOIN LATERAL (
    SELECT p.erase_time FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id OFFSET 0
) AS p
WHERE d.delivery_id = $1 AND p.erase_time IS NULL ORDER BY d.scan_id DESC LIMIT $2
