-- $1 text[]: services
SELECT EXISTS (SELECT FROM replicas
    WHERE service = ANY ($1) AND heartbeat_time > clock_timestamp() - interval '4 seconds') AS alive
