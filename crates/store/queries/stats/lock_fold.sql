SELECT pg_try_advisory_xact_lock(hashtext('earshot.stats.fold')) AS locked
