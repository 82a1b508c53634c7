//! Stored responses that are repeated.

use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use domain::{Id, Timestamp, key::ApiKey, key::Role};
use store::{
    idempotency::{self, Answer, RequestId},
    keys,
    seal::Sealer,
};
use test_support::TestDatabase;

use crate::support::{number, run};

fn sealer() -> Sealer {
    Sealer::new([("test".to_owned(), [7; 32])]).unwrap()
}

async fn key(conn: &mut AsyncPgConnection) -> Id {
    let key = ApiKey::generate();
    let now = Timestamp::now();
    let account = keys::ensure_account(conn, "acme", now).await.unwrap();
    let new = keys::NewKey::new(account, &key, Role::Owner);
    keys::insert(conn, new, now).await.unwrap();
    key.id
}

fn answer(body: &str) -> Answer {
    Answer {
        body_hash: [3; 32],
        status: 201,
        body: body.to_owned(),
    }
}

/// Does the work of `request` unless it was done before; returns true if it did it.
async fn once(conn: &mut AsyncPgConnection, request: RequestId, body: &str) -> Option<Answer> {
    conn.transaction(async |conn| {
        let first = idempotency::begin(conn, &sealer(), &request).await?;
        if first.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            idempotency::finish(conn, &sealer(), &request, &answer(body)).await?;
        }
        Ok::<_, store::Error>(first)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn concurrent_requests_with_one_key_share_one_answer() {
    let database = TestDatabase::create().await;
    let api_key = key(&mut database.connect().await).await;
    let request = RequestId {
        api_key,
        hash: [1; 32],
    };
    let tries = (0..8).map(|n| {
        let database = &database;
        async move { once(&mut database.connect().await, request, &n.to_string()).await }
    });
    let found: Vec<_> = futures::future::join_all(tries).await;
    assert_eq!(found.iter().filter(|one| one.is_none()).count(), 1);
    let mut answers: Vec<_> = found.into_iter().flatten().map(|a| a.body).collect();
    answers.dedup();
    assert_eq!(answers.len(), 1);
}

#[tokio::test]
async fn a_rolled_back_request_can_be_repeated() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let request = RequestId {
        api_key: key(&mut conn).await,
        hash: [1; 32],
    };
    let failed: Result<(), store::Error> = conn
        .transaction(async |conn| {
            idempotency::begin(conn, &sealer(), &request).await?;
            idempotency::finish(conn, &sealer(), &request, &answer("lost")).await?;
            Err(store::Error::Query(store::QueryError::RollbackTransaction))
        })
        .await;
    assert!(failed.is_err());
    assert_eq!(once(&mut conn, request, "kept").await, None);
    assert_eq!(once(&mut conn, request, "x").await, Some(answer("kept")));
}

#[tokio::test]
async fn an_answer_is_kept_for_a_day_and_purged_afterwards() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let api_key = key(&mut conn).await;
    for n in 0..5 {
        let request = RequestId {
            api_key,
            hash: [n; 32],
        };
        once(&mut conn, request, "first").await;
    }
    let request = RequestId {
        api_key,
        hash: [0; 32],
    };
    let age = |hours: &str| {
        format!("UPDATE idempotency_keys SET create_time = create_time - interval '{hours} hours'")
    };
    run(&mut conn, age("23.9")).await;
    assert_eq!(once(&mut conn, request, "x").await, Some(answer("first")));
    run(&mut conn, age("0.2")).await;
    assert_eq!(once(&mut conn, request, "second").await, None);
    assert_eq!(once(&mut conn, request, "x").await, Some(answer("second")));
    // Kept an hour longer, so that a row that was just found valid can still be read.
    assert_eq!(idempotency::purge(&mut conn, 10).await.unwrap(), 0);
    run(&mut conn, age("1")).await;
    assert_eq!(idempotency::purge(&mut conn, 3).await.unwrap(), 3);
    assert_eq!(idempotency::purge(&mut conn, 3).await.unwrap(), 1);
    assert_eq!(
        number(&mut conn, "SELECT count(*) AS number FROM idempotency_keys").await,
        1
    );
}

#[tokio::test]
async fn an_answer_can_only_be_opened_in_its_own_row() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let api_key = key(&mut conn).await;
    let request = RequestId {
        api_key,
        hash: [1; 32],
    };
    once(&mut conn, request, "hush").await;
    run(
        &mut conn,
        "UPDATE idempotency_keys SET request_hash = decode(repeat('02', 32), 'hex')",
    )
    .await;
    let moved = RequestId {
        api_key,
        hash: [2; 32],
    };
    let opened = idempotency::begin(&mut conn, &sealer(), &moved).await;
    assert!(matches!(opened, Err(store::Error::Sealed(_))), "{opened:?}");
}

#[tokio::test]
async fn account_that_has_stored_too_much_today_is_refused_before_the_work() {
    let database = TestDatabase::create().await;
    let conn = &mut database.connect().await;
    let (api_key, other_key) = (key(conn).await, key(conn).await);
    let request = |api_key, n| RequestId {
        api_key,
        hash: [n; 32],
    };
    once(conn, request(api_key, 1), &"a".repeat(10_000)).await;
    let stored = number(conn, "SELECT bytes AS number FROM idempotency_days").await;
    assert!((10_000..20_000).contains(&stored), "{stored}");
    let full = i64::from(idempotency::MAX_BYTES_PER_DAY);
    run(conn, format!("UPDATE idempotency_days SET bytes = {full}")).await;

    // Another key of the same account is no way out, and what was stored can be repeated.
    let begin = async |conn: &mut AsyncPgConnection, request| {
        conn.transaction(async |conn| idempotency::begin(conn, &sealer(), &request).await)
            .await
    };
    for api_key in [api_key, other_key] {
        let refused = begin(conn, request(api_key, 2)).await;
        let Err(store::Error::QuotaExceeded(exceeded)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(exceeded.quota, "Idempotency-Key");
    }
    assert!(begin(conn, request(api_key, 1)).await.unwrap().is_some());

    run(conn, "UPDATE idempotency_days SET day = day - 1").await;
    assert!(once(conn, request(api_key, 2), "b").await.is_none());
    run(conn, "UPDATE idempotency_days SET day = day - 2").await;
    idempotency::purge(conn, 10).await.unwrap();
    let days = "SELECT count(*) AS number FROM idempotency_days";
    assert_eq!(number(conn, days).await, 0);
}
