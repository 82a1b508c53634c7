//! Requests to confirm an address, who is asked and how often; and digests whose dispatcher dies.

use std::time::Duration;

use diesel_async::AsyncPgConnection;
use domain::{
    ConnectionName, Timestamp,
    connection::{ConnectionChange, MailAddress, RecipientState},
};
use store::{
    connections, deliveries, digests, lanes,
    mail::{self, Changed, Digest},
};
use test_support::{Fixture, instructions, post};

use crate::support::{number, record, run, start};

const URL: &str = "mailto:ada@example.com";

fn ada() -> Digest {
    "ada@example.com".parse::<MailAddress>().unwrap().digest()
}

/// Returns whom a dispatcher would ask now.
async fn to_ask(conn: &mut AsyncPgConnection) -> Vec<ConnectionName> {
    let taken = mail::take_to_ask(conn, 10, 50).await.unwrap();
    taken
        .into_iter()
        .map(|(connection, _)| connection)
        .collect()
}

async fn pass_days(conn: &mut AsyncPgConnection, days: u32) {
    for table in [
        "mail_addresses",
        "mail_recipients",
        "account_mail_addresses",
    ] {
        let sql = format!("UPDATE {table} SET ask_time = ask_time - interval '{days} days'");
        run(conn, sql).await;
    }
}

async fn set(conn: &mut AsyncPgConnection, name: ConnectionName, state: RecipientState) -> Changed {
    mail::set_state(conn, name, ada(), state, Timestamp::now())
        .await
        .unwrap()
}

async fn delete(conn: &mut AsyncPgConnection, name: ConnectionName) {
    let deleted = connections::delete(conn, name, false, Timestamp::now()).await;
    deleted.unwrap();
}

/// Like a PATCH of `url`.
async fn enter_again(conn: &mut AsyncPgConnection, fixture: &Fixture, name: ConnectionName) {
    let current = connections::get(conn, &fixture.sealer, name).await;
    let change = ConnectionChange {
        url: Some(URL.to_owned()),
        ..ConnectionChange::default()
    };
    let (current, now) = (current.unwrap().unwrap(), Timestamp::now());
    connections::update(conn, &fixture.sealer, current, &change, now)
        .await
        .unwrap();
}

#[tokio::test]
async fn who_refused_is_not_asked_again_by_the_account() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let other = at.fixture.beside(conn, "other").await;
    let first = at.fixture.connection(conn, URL).await;
    assert_eq!(to_ask(conn).await, [first]);
    mail::asked(conn, first, ada(), Timestamp::now())
        .await
        .unwrap();
    delete(conn, first).await;
    // The link still works.
    assert_eq!(
        set(conn, first, RecipientState::Unsubscribed).await,
        Changed::Gone
    );
    let second = at.fixture.connection(conn, URL).await;
    for _ in 0..2 {
        pass_days(conn, 31).await;
        mail::purge(conn, Duration::ZERO).await.unwrap();
        assert!(to_ask(conn).await.is_empty());
    }
    // It is not for another account to know.
    let theirs = other.connection(conn, URL).await;
    assert_eq!(to_ask(conn).await, [theirs]);
    // Who confirms changes their mind.
    for name in [theirs, second] {
        set(conn, name, RecipientState::Confirmed).await;
    }
    let third = at.fixture.connection(conn, URL).await;
    pass_days(conn, 1).await;
    assert_eq!(to_ask(conn).await, [third]);
}

#[tokio::test]
async fn account_asks_an_address_once_in_30_days() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let first = at.fixture.connection(conn, URL).await;
    assert_eq!(to_ask(conn).await, [first]);
    let now = Timestamp::now();
    mail::asked(conn, first, ada(), now).await.unwrap();
    delete(conn, first).await;
    let second = at.fixture.connection(conn, URL).await;
    for days in [1, 28] {
        pass_days(conn, days).await;
        mail::purge(conn, Duration::ZERO).await.unwrap();
        assert!(to_ask(conn).await.is_empty());
    }
    pass_days(conn, 2).await;
    assert_eq!(to_ask(conn).await, [second]);
    mail::asked(conn, second, ada(), now).await.unwrap();
    pass_days(conn, 31).await;
    mail::purge(conn, Duration::ZERO).await.unwrap();
    let left = "SELECT (SELECT count(*) FROM account_mail_addresses) + (SELECT count(*) FROM mail_addresses) AS number";
    assert_eq!(number(conn, left).await, 0);
}

#[tokio::test]
async fn entering_an_address_again_keeps_a_request_of_this_week() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let name = at.fixture.connection(conn, URL).await;
    mail::asked(conn, name, ada(), Timestamp::now())
        .await
        .unwrap();
    let asked = "SELECT count(ask_time) AS number FROM mail_recipients";
    for (days, expected) in [(6, 1), (2, 0)] {
        pass_days(conn, days).await;
        enter_again(conn, &at.fixture, name).await;
        assert_eq!(number(conn, asked).await, expected);
    }
}

#[tokio::test]
async fn address_is_asked_a_day_later_if_the_dispatcher_dies() {
    let mut at = start().await;
    let name = at.fixture.connection(&mut at.conn, URL).await;
    {
        let mut conn = at.database.connect().await;
        assert_eq!(to_ask(&mut conn).await, [name]);
    }
    let conn = &mut at.conn;
    assert!(to_ask(conn).await.is_empty());
    pass_days(conn, 1).await;
    assert_eq!(to_ask(conn).await, [name]);
}

#[tokio::test]
async fn dispatcher_that_dies_with_a_digest_or_after_it_loses_no_scan() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let name = at.fixture.connection(conn, URL).await;
    let manager = at.fixture.manager(conn, &instructions("a"), &[name]).await;
    let scan = record(conn, manager, &[post("forum:1", "t")]).await[0];
    run(conn, "UPDATE connections SET digest = 'HOURLY'").await;
    let (namespace, connection) = (name.namespace.to_uuid(), name.connection.to_uuid());
    let (manager, scan) = (scan.manager.to_uuid(), scan.scan.to_uuid());
    run(
        conn,
        format!(
            "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
             VALUES ('{namespace}', '{connection}', '{manager}', '{scan}', now() - interval '2 hours')"
        ),
    )
    .await;
    {
        let mut dying = at.database.begin(&[]).await;
        assert!(digests::make(&mut dying, name).await.unwrap());
    }
    assert!(digests::make(conn, name).await.unwrap());
    assert!(!digests::make(conn, name).await.unwrap());
    assert_eq!(at.database.count("deliveries").await, 1);

    // This one dies before it sets the hint.
    run(conn, "UPDATE connection_lanes SET next_due_time = NULL").await;
    let found = deliveries::find_waiting(conn, None, 9).await.unwrap();
    assert_eq!(found.unnoted, 1);
    let due = lanes::due(conn, &[], 9).await.unwrap();
    assert_eq!(due[0].connection, name);
}
