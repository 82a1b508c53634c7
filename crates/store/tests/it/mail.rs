//! Recipients of e-mail.

use diesel_async::AsyncPgConnection;
use domain::{
    ConnectionName, Timestamp,
    connection::{CreateConnection, Format, Headers, MailAddress, Method, RecipientState},
};
use store::{
    connections, keyed,
    mail::{self, Changed},
};
use test_support::{Fixture, eventually};

use crate::support::{Start, start};

const ADA: &str = "ada@example.com";
const GRACE: &str = "grace@example.com";

/// A Connection with both recipients.
async fn connect(conn: &mut AsyncPgConnection, fixture: &Fixture) -> ConnectionName {
    let draft = CreateConnection {
        nickname: "mail".to_owned(),
        url: format!("mailto:{ADA},{GRACE}"),
        method: Method::Post,
        headers: Headers::default(),
        format: Format::Email,
        max_per_second: None,
        signing_secrets: Vec::new(),
        events: Vec::new(),
        digest: None,
    };
    connections::insert(conn, &fixture.sealer, fixture.namespace, &draft)
        .await
        .unwrap()
        .name
}

fn digest(address: &str) -> mail::Digest {
    address.parse::<MailAddress>().unwrap().digest()
}

async fn set(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    address: &str,
    state: RecipientState,
) -> Changed {
    let now = Timestamp::now();
    mail::set_state(conn, name, digest(address), state, now)
        .await
        .unwrap()
}

#[tokio::test]
async fn reply_of_a_server_does_not_undo_an_unsubscription() {
    let mut at = start().await;
    let name = connect(&mut at.conn, &at.fixture).await;
    for (state, expected) in [
        (RecipientState::Unsubscribed, Changed::Stored),
        (RecipientState::Refused, Changed::Gone),
    ] {
        assert_eq!(set(&mut at.conn, name, ADA, state).await, expected);
    }
    let states = mail::states(&mut at.conn, name.namespace, &[name.connection])
        .await
        .unwrap();
    let state = states[&(name.connection, digest(ADA))];
    assert_eq!(state, RecipientState::Unsubscribed);
}

#[tokio::test]
async fn last_two_recipients_who_unsubscribe_at_once_disable_the_connection() {
    let Start {
        database,
        mut conn,
        fixture,
    } = start().await;
    let name = connect(&mut conn, &fixture).await;
    let mut other = database.connect().await;
    let state = RecipientState::Unsubscribed;
    keyed::begin(&mut conn).await.unwrap();
    assert_eq!(set(&mut conn, name, ADA, state).await, Changed::Stored);
    let second = set(&mut other, name, GRACE, state);
    let first = async {
        eventually("the second waits", async || {
            let waits =
                "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            database.count(waits).await == 1
        })
        .await;
        let ended: Result<(), store::Error> = keyed::end(&mut conn, Ok(())).await;
        ended.unwrap();
    };
    let (changed, ()) = tokio::join!(second, first);
    assert_eq!(changed, Changed::Disabled);
}
