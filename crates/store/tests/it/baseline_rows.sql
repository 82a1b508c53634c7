-- A row in each table of the baseline. Never changed: databases of the first release look like this.
INSERT INTO accounts (id, name, create_time) VALUES ('00000000-0000-0000-0000-00000000000a', 'acme', now());
INSERT INTO api_keys (id, account_id, secret_hash, role, create_time)
VALUES ('00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-00000000000a', sha256('secret'), 'OWNER', now());
INSERT INTO account_days VALUES ('00000000-0000-0000-0000-00000000000a', current_date, 1);
INSERT INTO audit_events (account_id, id, create_time, action, resource, fields, actor_type)
VALUES ('00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-00000000000c', now(), 'CREATE', 'namespaces/x', '{}', 'KEY');
INSERT INTO namespaces (id, account_id, nickname, create_time, update_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000a', 'Acme', now(), now());
INSERT INTO connections (namespace_id, id, nickname, url, method, headers_sealed, create_time, update_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000e', 'Hook', 'https://hooks.example.com/',
    'POST', '\x00', now(), now());
INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 'Watch', true, 'AUTOMATIC', 'FORUM',
    'APPLIED', '{}', now(), now(), now());
INSERT INTO manager_notices VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 0,
    '00000000-0000-0000-0000-00000000000e');
INSERT INTO manager_verdicts VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 1);
INSERT INTO plan_changes (version, namespace_id, manager_id, change_time)
VALUES (1, '00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', now());
INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) VALUES ('hackernews:newest', 'hackernews', true, now(), now());
INSERT INTO feed_watchers
VALUES ('hackernews:newest', '00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f');
INSERT INTO account_feeds VALUES ('00000000-0000-0000-0000-00000000000a', 'hackernews:newest', now(), '{}');
INSERT INTO recent_posts VALUES (gen_random_uuid(), 'hackernews:newest', now(), gen_random_uuid(), '{}', 2);
INSERT INTO feed_post_ids VALUES ('hackernews:newest', date_trunc('hour', now()), '\x0011223344556677');
INSERT INTO feed_days (feed, day, posts, late, gone, quarantined, gaps) VALUES ('hackernews:newest', current_date, 1, 0, 0, 0, 0);
INSERT INTO feed_gaps (feed, find_time, end_time, reason) VALUES ('hackernews:newest', now(), now(), 'the platform was away');
INSERT INTO feed_missing_ids VALUES ('hackernews:newest', 1, now());
INSERT INTO quarantined_posts (feed, quarantine_time, kind, reason) VALUES ('hackernews:newest', now(), 'UNREADABLE', 'no id');
INSERT INTO platform_budgets (credential) VALUES ('x api.x.com 1');
INSERT INTO platform_budget_shares VALUES ('x api.x.com 1', '00000000-0000-0000-0000-00000000000a', current_date, 1);
INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, url, user_id, user_name, user_url)
VALUES ('00000000-0000-0000-0000-000000000010', now(), '00000000-0000-0000-0000-000000000011', 'hackernews:newest', 'FORUM_LINK',
    now(), 'hackernews:1', 'https://news.example.com/1', 'u', 'u', 'https://news.example.com/u');
INSERT INTO post_keys VALUES ('00000000-0000-0000-0000-000000000011', '00000000-0000-0000-0000-000000000010');
INSERT INTO scan_keys VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f',
    '00000000-0000-0000-0000-000000000011', now());
INSERT INTO scan_clocks (namespace_id, manager_id, last_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', now());
INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', '00000000-0000-0000-0000-000000000012',
    now(), now(), '00000000-0000-0000-0000-000000000010', now(), true, '{}');
INSERT INTO scan_likes (namespace_id, manager_id, key, scan_id, create_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 1, '00000000-0000-0000-0000-000000000012', now());
INSERT INTO rechecks (platform) VALUES ('hackernews');
INSERT INTO missing_posts VALUES ('hackernews', 'hackernews:1');
INSERT INTO refused_posts
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 'hackernews:newest',
    '00000000-0000-0000-0000-000000000011', '00000000-0000-0000-0000-00000000000a', now(), now(), 2, '{}');
INSERT INTO look_backs (feed, notify, since) VALUES ('hackernews:newest', false, now());
INSERT INTO backfills (namespace_id, manager_id, feed, notify, look_back_id)
SELECT '00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', feed, notify, id FROM look_backs;
INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, next_attempt_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000e', '00000000-0000-0000-0000-000000000013',
    now(), now(), '00000000-0000-0000-0000-00000000000f', '00000000-0000-0000-0000-000000000012', 'RETRYING', now());
INSERT INTO delivery_attempts (delivery_id, number, time, latency_ms) VALUES ('00000000-0000-0000-0000-000000000013', 1, now(), 5);
INSERT INTO replays (namespace_id, connection_id, id, create_time, update_time, start_time, end_time, total, counted, place_time,
    place_id, next_batch_time)
VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000e', gen_random_uuid(), now(), now(), now(), now(),
    1, true, now(), gen_random_uuid(), now());
INSERT INTO connection_tests (id, namespace_id, connection_id, create_time)
VALUES (gen_random_uuid(), '00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000e', now());
INSERT INTO rate_ledgers VALUES ('00000000-0000-0000-0000-00000000000b', '{}');
INSERT INTO account_rate_ledgers VALUES ('00000000-0000-0000-0000-00000000000a', '{}');
INSERT INTO idempotency_keys (api_key_id, request_hash) VALUES ('00000000-0000-0000-0000-00000000000b', sha256('request'));
INSERT INTO idempotency_days VALUES ('00000000-0000-0000-0000-00000000000a', current_date, 100);
INSERT INTO stats_deltas (feed, time, counts) VALUES ('hackernews:newest', now(), '{}');
INSERT INTO stats VALUES ('00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000f', 60, now(), '{}');
INSERT INTO feed_stats VALUES ('hackernews:newest', 60, now(), 1);
INSERT INTO replicas VALUES (gen_random_uuid(), 'scanner', now());
INSERT INTO leases (kind, key) VALUES ('replay', '1');
INSERT INTO purges (namespace_id) VALUES (gen_random_uuid());
