//! The tables, as the migrations make them. Written by `cargo xtask generate`; a test holds this file to
//! a migrated database.

diesel::table! {
    account_days (account_id, day) {
        account_id -> Uuid,
        day -> Date,
        scans -> BigInt,
    }
}

diesel::table! {
    account_feeds (account_id, feed) {
        account_id -> Uuid,
        feed -> Text,
        watch_time -> Timestamptz,
        before -> Jsonb,
        leave_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    account_mail_addresses (account_id, address_digest) {
        account_id -> Uuid,
        address_digest -> Bytea,
        ask_time -> Nullable<Timestamptz>,
        refuse_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    account_rate_ledgers (account_id) {
        account_id -> Uuid,
        ledger -> Jsonb,
    }
}

diesel::table! {
    accounts (id) {
        id -> Uuid,
        name -> Text,
        create_time -> Timestamptz,
        quota_managers -> Nullable<Integer>,
        quota_connections -> Nullable<Integer>,
        quota_feeds -> Nullable<Integer>,
        quota_scans_per_day -> Nullable<Integer>,
        quota_rate_limit_per_minute -> Nullable<Integer>,
        quota_namespaces -> Nullable<Integer>,
        quota_content_bytes -> Nullable<Integer>,
    }
}

diesel::table! {
    address_keys (id) {
        id -> Bool,
        key -> Bytea,
    }
}

diesel::table! {
    api_keys (id) {
        id -> Uuid,
        account_id -> Uuid,
        secret_hash -> Bytea,
        role -> Text,
        namespace_ids -> Nullable<Array<Uuid>>,
        create_time -> Timestamptz,
        expire_time -> Nullable<Timestamptz>,
        revoke_time -> Nullable<Timestamptz>,
        networks -> Nullable<Array<Text>>,
        last_use_time -> Nullable<Timestamptz>,
        replaced_by -> Nullable<Uuid>,
        person -> Nullable<Text>,
        subject -> Nullable<Text>,
    }
}

diesel::table! {
    audit_events (id) {
        account_id -> Uuid,
        namespace_id -> Nullable<Uuid>,
        id -> Uuid,
        create_time -> Timestamptz,
        action -> Text,
        resource -> Text,
        fields -> Array<Text>,
        actor_type -> Text,
        key_id -> Nullable<Uuid>,
        client_address -> Nullable<Text>,
        request_id -> Nullable<Text>,
    }
}

diesel::table! {
    backfills (namespace_id, manager_id, feed, notify) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        feed -> Text,
        notify -> Bool,
        since -> Nullable<Timestamptz>,
        state -> Text,
        look_back_id -> Nullable<BigInt>,
        before -> Nullable<Timestamptz>,
        reach_time -> Nullable<Timestamptz>,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        failure_count -> Integer,
        error -> Nullable<Text>,
        next_time -> Nullable<Timestamptz>,
        traceparent -> Nullable<Text>,
        catch_up_since -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    connection_lanes (namespace_id, connection_id) {
        namespace_id -> Uuid,
        connection_id -> Uuid,
        account_id -> Uuid,
        next_due_time -> Nullable<Timestamptz>,
        failure_streak -> Integer,
        recent_outcomes -> Integer,
        recent_count -> SmallInt,
        open_until -> Nullable<Timestamptz>,
        open_count -> Integer,
        probed_by -> Nullable<Uuid>,
        probe_end_time -> Nullable<Timestamptz>,
        last_success_time -> Nullable<Timestamptz>,
        failing_since -> Nullable<Timestamptz>,
        rate_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    connection_tests (id) {
        id -> Uuid,
        namespace_id -> Uuid,
        connection_id -> Uuid,
        create_time -> Timestamptz,
        taken_by -> Nullable<Uuid>,
        answer -> Nullable<Jsonb>,
    }
}

diesel::table! {
    connections (namespace_id, id) {
        namespace_id -> Uuid,
        id -> Uuid,
        nickname -> Text,
        url -> Text,
        method -> Text,
        headers_sealed -> Bytea,
        state -> Text,
        state_reason -> Nullable<Text>,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        max_per_second -> Nullable<Integer>,
        signing_secrets_sealed -> Nullable<Bytea>,
        format -> Text,
        url_sealed -> Nullable<Bytea>,
        events -> Array<Text>,
        digest -> Nullable<Text>,
        time_zone -> Text,
    }
}

diesel::table! {
    deliveries (namespace_id, connection_id, create_time, id) {
        namespace_id -> Uuid,
        connection_id -> Uuid,
        id -> Uuid,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        manager_id -> Nullable<Uuid>,
        scan_id -> Nullable<Uuid>,
        state -> Text,
        attempt_count -> Integer,
        last_attempt_time -> Nullable<Timestamptz>,
        next_attempt_time -> Nullable<Timestamptz>,
        leased_by -> Nullable<Uuid>,
        last_status_code -> Nullable<SmallInt>,
        last_error -> Nullable<Text>,
        urgent -> Bool,
        schedule_base -> Integer,
        reopen_time -> Nullable<Timestamptz>,
        reopen_asked -> Bool,
        traceparent -> Nullable<Text>,
        crash_count -> SmallInt,
        event -> Nullable<Jsonb>,
    }
}

diesel::table! {
    delivery_attempts (delivery_id, time, number) {
        delivery_id -> Uuid,
        number -> Integer,
        time -> Timestamptz,
        status_code -> Nullable<SmallInt>,
        error -> Nullable<Text>,
        latency_ms -> Integer,
        dns_ms -> Nullable<Integer>,
        connect_ms -> Nullable<Integer>,
        tls_ms -> Nullable<Integer>,
        first_byte_ms -> Nullable<Integer>,
        address -> Nullable<Text>,
        response_body -> Nullable<Text>,
    }
}

diesel::table! {
    digest_scans (namespace_id, connection_id, manager_id, scan_id) {
        namespace_id -> Uuid,
        connection_id -> Uuid,
        manager_id -> Uuid,
        scan_id -> Uuid,
        create_time -> Timestamptz,
        delivery_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    digests (delivery_id) {
        delivery_id -> Uuid,
        namespace_id -> Uuid,
        connection_id -> Uuid,
    }
}

diesel::table! {
    feed_days (feed, day) {
        feed -> Text,
        day -> Date,
        posts -> BigInt,
        late -> BigInt,
        gone -> BigInt,
        quarantined -> BigInt,
        gaps -> BigInt,
        ids_read -> BigInt,
        ids_other -> BigInt,
        ids_gone -> BigInt,
        ids_up_to -> Nullable<BigInt>,
    }
}

diesel::table! {
    feed_gaps (id) {
        id -> BigInt,
        feed -> Text,
        find_time -> Timestamptz,
        start_time -> Nullable<Timestamptz>,
        end_time -> Timestamptz,
        reason -> Text,
        fill_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    feed_missing_ids (feed, id) {
        feed -> Text,
        id -> BigInt,
        miss_time -> Timestamptz,
    }
}

diesel::table! {
    feed_post_ids (feed, hour) {
        feed -> Text,
        hour -> Timestamptz,
        ids -> Bytea,
    }
}

diesel::table! {
    feed_stats (feed, interval_seconds, time) {
        feed -> Text,
        interval_seconds -> Integer,
        time -> Timestamptz,
        posts -> BigInt,
    }
}

diesel::table! {
    feed_watchers (feed, namespace_id, manager_id) {
        feed -> Text,
        namespace_id -> Uuid,
        manager_id -> Uuid,
    }
}

diesel::table! {
    feeds (name) {
        name -> Text,
        platform -> Text,
        watched -> Bool,
        cursor -> Nullable<Jsonb>,
        next_poll_time -> Timestamptz,
        leased_by -> Nullable<Uuid>,
        last_poll_time -> Nullable<Timestamptz>,
        failure_count -> Integer,
        last_error -> Nullable<Text>,
        gap_count -> BigInt,
        create_time -> Timestamptz,
        posts_per_day -> Nullable<Double>,
        read_time -> Nullable<Timestamptz>,
        last_post_time -> Nullable<Timestamptz>,
        trouble -> Nullable<Text>,
        slow -> Bool,
        kept_since -> Nullable<Timestamptz>,
        quarantine_count -> BigInt,
        quarantine_time -> Nullable<Timestamptz>,
        quarantine_reason -> Nullable<Text>,
        late_time -> Nullable<Timestamptz>,
        ids_since -> Nullable<Timestamptz>,
        late_reading -> Nullable<Jsonb>,
        notice -> Nullable<Text>,
        crash_count -> SmallInt,
        rewatch_time -> Nullable<Timestamptz>,
        clear_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    idempotency_days (account_id, day) {
        account_id -> Uuid,
        day -> Date,
        bytes -> BigInt,
    }
}

diesel::table! {
    idempotency_keys (api_key_id, request_hash) {
        api_key_id -> Uuid,
        request_hash -> Bytea,
        answer -> Nullable<Bytea>,
        create_time -> Timestamptz,
    }
}

diesel::table! {
    leases (kind, key) {
        kind -> Text,
        key -> Text,
        leased_by -> Nullable<Uuid>,
        crash_count -> SmallInt,
        next_time -> Timestamptz,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    look_backs (id) {
        id -> BigInt,
        feed -> Text,
        notify -> Bool,
        since -> Timestamptz,
        cursor -> Nullable<Jsonb>,
        reach_time -> Nullable<Timestamptz>,
        next_time -> Timestamptz,
        leased_by -> Nullable<Uuid>,
        failure_count -> Integer,
        create_time -> Timestamptz,
        crash_count -> SmallInt,
        clear_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    mail_addresses (address_digest) {
        address_digest -> Bytea,
        account_id -> Uuid,
        ask_time -> Timestamptz,
    }
}

diesel::table! {
    mail_receipts (delivery_id, address_digest) {
        delivery_id -> Uuid,
        address_digest -> Bytea,
        time -> Timestamptz,
    }
}

diesel::table! {
    mail_recipients (namespace_id, connection_id, address_digest) {
        namespace_id -> Uuid,
        connection_id -> Uuid,
        address_digest -> Bytea,
        state -> Text,
        ask_time -> Nullable<Timestamptz>,
        update_time -> Timestamptz,
    }
}

diesel::table! {
    manager_notices (namespace_id, manager_id, position) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        position -> SmallInt,
        connection_id -> Uuid,
        filter -> Nullable<Text>,
    }
}

diesel::table! {
    manager_verdicts (namespace_id, manager_id) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        count -> Integer,
    }
}

diesel::table! {
    managers (namespace_id, id) {
        namespace_id -> Uuid,
        id -> Uuid,
        nickname -> Text,
        enable -> Bool,
        mode -> Text,
        source -> Text,
        state -> Text,
        generation -> BigInt,
        input -> Nullable<Jsonb>,
        submitted_instructions -> Nullable<Jsonb>,
        instructions -> Nullable<Jsonb>,
        apply_time -> Nullable<Timestamptz>,
        apply_error_code -> Nullable<Text>,
        apply_error_message -> Nullable<Text>,
        submit_time -> Timestamptz,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        recompile_after -> Nullable<Timestamptz>,
        mutes -> Jsonb,
        languages -> Array<Text>,
        max_scans_per_day -> Nullable<Integer>,
        kinds -> Array<Text>,
        duplicates -> Text,
        compiled_by -> Nullable<Uuid>,
        compiled_generation -> Nullable<BigInt>,
        content_bytes -> Nullable<Integer>,
        crash_count -> SmallInt,
        recompile_failures -> SmallInt,
        clear_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    missing_posts (platform, post_id) {
        platform -> Text,
        post_id -> Text,
        first_time -> Timestamptz,
    }
}

diesel::table! {
    namespaces (id) {
        id -> Uuid,
        account_id -> Uuid,
        nickname -> Text,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        mutes -> Jsonb,
        content_bytes -> Nullable<Integer>,
    }
}

diesel::table! {
    plan_changes (version) {
        version -> BigInt,
        namespace_id -> Uuid,
        manager_id -> Uuid,
        change_time -> Timestamptz,
        nonce -> Nullable<Uuid>,
    }
}

diesel::table! {
    plan_version (single) {
        single -> Bool,
        version -> BigInt,
    }
}

diesel::table! {
    platform_budget_shares (credential, account_id) {
        credential -> Text,
        account_id -> Uuid,
        day -> Date,
        day_posts -> Integer,
    }
}

diesel::table! {
    platform_budgets (credential) {
        credential -> Text,
        ledger -> Jsonb,
        silent_until -> Nullable<Timestamptz>,
        day -> Nullable<Date>,
        day_posts -> Integer,
    }
}

diesel::table! {
    post_keys (post_key) {
        post_key -> Uuid,
        id -> Uuid,
    }
}

diesel::table! {
    posts (receive_time, id) {
        id -> Uuid,
        receive_time -> Timestamptz,
        post_key -> Uuid,
        feed -> Text,
        #[sql_name = "type"]
        type_ -> Text,
        time -> Timestamptz,
        post_id -> Text,
        title -> Nullable<Text>,
        text -> Nullable<Text>,
        url -> Text,
        subforum_id -> Nullable<Text>,
        subforum_name -> Nullable<Text>,
        subforum_url -> Nullable<Text>,
        user_id -> Text,
        user_name -> Text,
        user_url -> Text,
        erase_time -> Nullable<Timestamptz>,
        edit_digest -> Nullable<Bytea>,
    }
}

diesel::table! {
    purges (id) {
        id -> BigInt,
        namespace_id -> Uuid,
        manager_id -> Nullable<Uuid>,
        connection_id -> Nullable<Uuid>,
        create_time -> Timestamptz,
        next_time -> Timestamptz,
        owner_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    quarantined_posts (id) {
        id -> BigInt,
        feed -> Text,
        quarantine_time -> Timestamptz,
        kind -> Text,
        post_id -> Nullable<Text>,
        reason -> Text,
    }
}

diesel::table! {
    rate_ledgers (api_key_id) {
        api_key_id -> Uuid,
        ledger -> Jsonb,
    }
}

diesel::table! {
    recent_posts (post_key, feed) {
        post_key -> Uuid,
        feed -> Text,
        time -> Timestamptz,
        url_key -> Uuid,
        post -> Jsonb,
        bytes -> Nullable<Integer>,
    }
}

diesel::table! {
    rechecks (platform) {
        platform -> Text,
        stage -> Text,
        place_time -> Timestamptz,
        place_id -> Uuid,
        begin_time -> Timestamptz,
        next_time -> Timestamptz,
        leased_by -> Nullable<Uuid>,
        crash_count -> SmallInt,
        clear_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    refused_posts (namespace_id, manager_id, feed, post_key) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        feed -> Text,
        post_key -> Uuid,
        account_id -> Uuid,
        time -> Timestamptz,
        refuse_time -> Timestamptz,
        bytes -> Integer,
        post -> Jsonb,
    }
}

diesel::table! {
    replays (namespace_id, connection_id, id) {
        namespace_id -> Uuid,
        connection_id -> Uuid,
        id -> Uuid,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        start_time -> Timestamptz,
        end_time -> Timestamptz,
        states -> Nullable<Array<Text>>,
        state -> Text,
        total -> BigInt,
        counted -> Bool,
        done -> BigInt,
        place_time -> Timestamptz,
        place_id -> Uuid,
        next_batch_time -> Timestamptz,
    }
}

diesel::table! {
    replicas (id) {
        id -> Uuid,
        service -> Text,
        heartbeat_time -> Timestamptz,
    }
}

diesel::table! {
    scan_clocks (namespace_id, manager_id) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        last_time -> Timestamptz,
        quota_day -> Nullable<Date>,
        quota_made -> Integer,
        quota_suppressed -> Integer,
        quota_lowest -> Nullable<Double>,
        quota_highest -> Nullable<Double>,
        refused_since -> Nullable<Timestamptz>,
        refused_time -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    scan_keys (namespace_id, manager_id, post_key) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        post_key -> Uuid,
        create_time -> Timestamptz,
    }
}

diesel::table! {
    scan_likes (namespace_id, manager_id, key, scan_id) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        key -> BigInt,
        scan_id -> Uuid,
        create_time -> Timestamptz,
        sketch -> Nullable<Bytea>,
        silent -> Bool,
    }
}

diesel::table! {
    scans (namespace_id, manager_id, create_time, id) {
        namespace_id -> Uuid,
        manager_id -> Uuid,
        id -> Uuid,
        create_time -> Timestamptz,
        update_time -> Timestamptz,
        post_id -> Uuid,
        post_receive_time -> Timestamptz,
        value -> Bool,
        matched -> Jsonb,
        fanned_out -> Bool,
        labels -> Array<Text>,
        places -> Jsonb,
    }
}

diesel::table! {
    service_events (id) {
        id -> BigInt,
        namespace_id -> Uuid,
        event_type -> Text,
        name -> Text,
        details -> Jsonb,
        create_time -> Timestamptz,
    }
}

diesel::table! {
    sign_ins (state_hash) {
        state_hash -> Bytea,
        browser_hash -> Bytea,
        origin -> Text,
        expire_time -> Timestamptz,
        sealed -> Nullable<Bytea>,
        account_id -> Nullable<Uuid>,
        role -> Nullable<Text>,
        person -> Nullable<Text>,
        subject -> Nullable<Text>,
    }
}

diesel::table! {
    stats (namespace_id, subject_id, interval_seconds, time) {
        namespace_id -> Uuid,
        subject_id -> Uuid,
        interval_seconds -> Integer,
        time -> Timestamptz,
        counts -> Jsonb,
    }
}

diesel::table! {
    stats_deltas (id) {
        id -> BigInt,
        feed -> Nullable<Text>,
        namespace_id -> Nullable<Uuid>,
        subject_id -> Nullable<Uuid>,
        time -> Timestamptz,
        counts -> Jsonb,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    account_days,
    account_feeds,
    account_mail_addresses,
    account_rate_ledgers,
    accounts,
    address_keys,
    api_keys,
    audit_events,
    backfills,
    connection_lanes,
    connection_tests,
    connections,
    deliveries,
    delivery_attempts,
    digest_scans,
    digests,
    feed_days,
    feed_gaps,
    feed_missing_ids,
    feed_post_ids,
    feed_stats,
    feed_watchers,
    feeds,
    idempotency_days,
    idempotency_keys,
    leases,
    look_backs,
    mail_addresses,
    mail_receipts,
    mail_recipients,
    manager_notices,
    manager_verdicts,
    managers,
    missing_posts,
    namespaces,
    plan_changes,
    plan_version,
    platform_budget_shares,
    platform_budgets,
    post_keys,
    posts,
    purges,
    quarantined_posts,
    rate_ledgers,
    recent_posts,
    rechecks,
    refused_posts,
    replays,
    replicas,
    scan_clocks,
    scan_keys,
    scan_likes,
    scans,
    service_events,
    sign_ins,
    stats,
    stats_deltas,
);
