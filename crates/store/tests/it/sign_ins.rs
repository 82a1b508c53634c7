//! Sign-ins to the console, under the role of the gateway.

use std::time::Duration;

use diesel::sql_query;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
};
use store::{
    keys::{self, NewKey, SessionFilter},
    roles::Service,
    sessions::{self, Grant, GrantOutcome, Session, SignIn},
};

use crate::support::{Start, run, start};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

fn sign_in(state: u8, browser: u8) -> SignIn {
    SignIn {
        state_hash: [state; 32],
        browser_hash: [browser; 32],
    }
}

fn jane(account: &str) -> Grant<'_> {
    Grant {
        account,
        role: Role::Editor,
        person: "jane@example.com",
        subject: "7",
    }
}

async fn gateway(at: &Start) -> AsyncPgConnection {
    AsyncPgConnection::establish(&at.database.url_of(Service::Gateway))
        .await
        .unwrap()
}

/// Lets Jane come back from the provider.
async fn granted(conn: &mut AsyncPgConnection, sign_in: &SignIn) {
    sessions::begin(conn, sign_in, "192.0.2.1", b"sealed")
        .await
        .unwrap();
    let taken = sessions::take(conn, sign_in).await.unwrap();
    assert!(taken.is_some());
    let outcome = sessions::grant(conn, sign_in, jane("acme")).await;
    assert_eq!(outcome.unwrap(), GrantOutcome::Done);
}

/// Opens a session of Jane's, and returns its key.
async fn session(conn: &mut AsyncPgConnection, number: u8) -> ApiKey {
    let (one, key) = (sign_in(number, number), ApiKey::generate());
    granted(conn, &one).await;
    let opened = sessions::open(conn, &one.browser_hash, &key, HOUR).await;
    assert!(opened.unwrap().is_some());
    key
}

#[tokio::test]
async fn each_step_of_a_sign_in_is_done_once_and_by_the_browser_that_began() {
    let mut at = start().await;
    let mut conn = gateway(&at).await;
    let conn = &mut conn;
    let (ours, theirs) = (sign_in(1, 1), sign_in(1, 2));
    sessions::begin(conn, &ours, "192.0.2.1", b"sealed")
        .await
        .unwrap();
    let key = ApiKey::generate();
    for wrong in [theirs, sign_in(2, 1)] {
        assert!(sessions::take(conn, &wrong).await.unwrap().is_none());
    }
    // The provider has not answered yet.
    let early = sessions::open(conn, &ours.browser_hash, &key, HOUR).await;
    assert_eq!(early.unwrap(), None);

    let early = sessions::grant(conn, &ours, jane("acme")).await;
    assert_eq!(early.unwrap(), GrantOutcome::Gone);

    let sealed = sessions::take(conn, &ours).await.unwrap().unwrap();
    assert_eq!(sealed, b"sealed");
    assert!(sessions::take(conn, &ours).await.unwrap().is_none());

    for (account, outcome) in [
        ("nobody", GrantOutcome::NoAccount),
        ("acme", GrantOutcome::Done),
        ("acme", GrantOutcome::Gone),
    ] {
        let granted = sessions::grant(conn, &ours, jane(account)).await;
        assert_eq!(granted.unwrap(), outcome);
    }
    assert!(sessions::take(conn, &ours).await.unwrap().is_none());

    let other = sessions::open(conn, &theirs.browser_hash, &key, HOUR).await;
    assert_eq!(other.unwrap(), None);
    let opened = sessions::open(conn, &ours.browser_hash, &key, HOUR).await;
    let expected = Session {
        account: at.fixture.account,
        person: "jane@example.com".to_owned(),
    };
    assert_eq!(opened.unwrap(), Some(expected));
    let again = sessions::open(conn, &ours.browser_hash, &ApiKey::generate(), HOUR).await;
    assert_eq!(again.unwrap(), None);

    let now = Timestamp::now();
    let found = keys::find(conn, key.id).await.unwrap().unwrap();
    assert!(key.matches(&found.secret_hash));
    assert_eq!(found.role, Role::Editor);
    assert_eq!(found.person.as_deref(), Some("jane@example.com"));
    assert_eq!(found.subject.as_deref(), Some("7"));
    assert!(found.is_valid(now) && !found.is_valid(now.plus(2 * HOUR)));
    // Operators see it among the sessions, not among the keys.
    assert!(keys::list(&mut at.conn).await.unwrap().is_empty());
    let all = keys::list_sessions(&mut at.conn, SessionFilter::default())
        .await
        .unwrap();
    assert_eq!(all, [found]);
}

#[tokio::test]
async fn sign_in_that_takes_too_long_is_forgotten() {
    let mut at = start().await;
    let mut conn = gateway(&at).await;
    let (begun, claimable) = (sign_in(1, 1), sign_in(2, 2));
    sessions::begin(&mut conn, &begun, "192.0.2.1", b"sealed")
        .await
        .unwrap();
    granted(&mut conn, &claimable).await;
    let late = "UPDATE sign_ins SET expire_time = clock_timestamp() - interval '1 second'";
    assert_eq!(run(&mut at.conn, late).await, 2);

    assert!(sessions::take(&mut conn, &begun).await.unwrap().is_none());
    let key = ApiKey::generate();
    let opened = sessions::open(&mut conn, &claimable.browser_hash, &key, HOUR).await;
    assert_eq!(opened.unwrap(), None);
    assert_eq!(sessions::purge(&mut conn, DAY, 10).await.unwrap(), 2);
    assert_eq!(sessions::purge(&mut conn, DAY, 10).await.unwrap(), 0);
}

#[tokio::test]
async fn new_sign_in_replaces_the_oldest_of_an_origin_that_has_too_many() {
    let mut at = start().await;
    let mut conn = gateway(&at).await;
    let conn = &mut conn;
    let most = u8::try_from(sessions::MAX_PER_ORIGIN).unwrap();
    let (elsewhere, claimable) = (sign_in(201, 1), sign_in(202, 2));
    sessions::begin(conn, &elsewhere, "192.0.2.2", b"x")
        .await
        .unwrap();
    granted(conn, &claimable).await;
    for number in 0..=most {
        sessions::begin(conn, &sign_in(number, 1), "192.0.2.1", b"x")
            .await
            .unwrap();
    }
    let taken = sessions::take(conn, &sign_in(0, 1)).await.unwrap();
    assert!(taken.is_none());
    for kept in [sign_in(1, 1), sign_in(most, 1), elsewhere] {
        let taken = sessions::take(conn, &kept).await.unwrap();
        assert!(taken.is_some(), "{kept:?}");
    }
    let opened = sessions::open(conn, &claimable.browser_hash, &ApiKey::generate(), HOUR).await;
    assert!(opened.unwrap().is_some());

    // One that is being taken is not waited for.
    for number in [203, 204] {
        sessions::begin(conn, &sign_in(number, 1), "192.0.2.1", b"x")
            .await
            .unwrap();
    }
    run(&mut at.conn, "BEGIN").await;
    let taken = sessions::take(&mut at.conn, &sign_in(2, 1)).await.unwrap();
    assert!(taken.is_some());
    run(conn, "SET lock_timeout = '100ms'").await;
    sessions::begin(conn, &sign_in(200, 1), "192.0.2.1", b"x")
        .await
        .unwrap();
}

#[tokio::test]
async fn sign_in_that_becomes_a_session_is_either_forgotten_or_seen() {
    let mut at = start().await;
    let one = sign_in(1, 1);
    granted(&mut at.conn, &one).await;
    let mut opening = gateway(&at).await;
    run(&mut opening, "BEGIN").await;
    let key = ApiKey::generate();
    let opened = sessions::open(&mut opening, &one.browser_hash, &key, HOUR).await;
    assert!(opened.unwrap().is_some());
    run(&mut at.conn, "SET lock_timeout = '100ms'").await;
    let waits = sessions::forget(&mut at.conn, Some("7"), None)
        .await
        .unwrap_err();
    assert!(waits.to_string().contains("lock timeout"), "{waits}");
    run(&mut opening, "COMMIT").await;
    assert_eq!(
        sessions::forget(&mut at.conn, Some("7"), None)
            .await
            .unwrap(),
        0
    );
    let all = keys::list_sessions(&mut at.conn, SessionFilter::default())
        .await
        .unwrap();
    assert_eq!(all.len(), 1);
}

#[tokio::test]
async fn sign_in_whose_person_is_not_known_yet_is_forgotten_with_those_of_anyone() {
    let mut at = start().await;
    let mut conn = gateway(&at).await;
    let (begun, taken) = (sign_in(1, 1), sign_in(2, 2));
    for one in [&begun, &taken] {
        sessions::begin(&mut conn, one, "192.0.2.1", b"sealed")
            .await
            .unwrap();
    }
    let sealed = sessions::take(&mut conn, &taken).await.unwrap();
    assert!(sealed.is_some());
    granted(&mut conn, &sign_in(3, 3)).await;
    let stopped = sessions::forget(&mut at.conn, Some("joe"), Some("acme")).await;
    assert_eq!(stopped.unwrap(), 1);
    let outcome = sessions::grant(&mut conn, &taken, jane("acme")).await;
    assert_eq!(outcome.unwrap(), GrantOutcome::Gone);
    // The provider decides about a person who is still there.
    let sealed = sessions::take(&mut conn, &begun).await.unwrap();
    assert!(sealed.is_some());
}

#[tokio::test]
async fn session_whose_process_dies_before_the_commit_is_opened_by_another() {
    let mut at = start().await;
    let (mut dying, mut conn) = (gateway(&at).await, gateway(&at).await);
    let one = sign_in(1, 1);
    granted(&mut conn, &one).await;
    run(&mut dying, "BEGIN").await;
    let lost = ApiKey::generate();
    let opened = sessions::open(&mut dying, &one.browser_hash, &lost, HOUR).await;
    assert!(opened.unwrap().is_some());
    drop(dying);
    let key = ApiKey::generate();
    let opened = sessions::open(&mut conn, &one.browser_hash, &key, HOUR).await;
    assert!(opened.unwrap().is_some());
    let all = keys::list_sessions(&mut at.conn, SessionFilter::default())
        .await
        .unwrap();
    let ids: Vec<_> = all.iter().map(|session| session.id).collect();
    assert_eq!(ids, [key.id]);
}

#[tokio::test]
async fn session_goes_on_if_the_process_that_ends_it_dies_before_the_commit() {
    let at = start().await;
    let (mut dying, mut conn) = (gateway(&at).await, gateway(&at).await);
    let key = session(&mut conn, 1).await;
    run(&mut dying, "BEGIN").await;
    assert!(sessions::end(&mut dying, key.id).await.unwrap());
    drop(dying);
    let found = keys::find(&mut conn, key.id).await.unwrap().unwrap();
    assert_eq!(found.revoke_time, None);
    assert!(sessions::end(&mut conn, key.id).await.unwrap());
}

#[tokio::test]
async fn sign_in_whose_process_dies_at_the_provider_is_gone_and_can_be_begun_again() {
    let at = start().await;
    let (mut dying, mut conn) = (gateway(&at).await, gateway(&at).await);
    let one = sign_in(1, 1);
    sessions::begin(&mut conn, &one, "192.0.2.1", b"sealed")
        .await
        .unwrap();
    // The exchange of the code is between the two steps, so no transaction has both.
    let taken = sessions::take(&mut dying, &one).await.unwrap();
    assert!(taken.is_some());
    drop(dying);
    assert!(sessions::take(&mut conn, &one).await.unwrap().is_none());
    let opened = sessions::open(&mut conn, &one.browser_hash, &ApiKey::generate(), HOUR).await;
    assert_eq!(opened.unwrap(), None);
    let again = sign_in(2, 1);
    sessions::begin(&mut conn, &again, "192.0.2.1", b"sealed")
        .await
        .unwrap();
    let taken = sessions::take(&mut conn, &again).await.unwrap();
    assert!(taken.is_some());
}

#[tokio::test]
async fn gateway_ends_and_purges_sessions_but_no_keys() {
    let mut at = start().await;
    let mut conn = gateway(&at).await;
    let session = session(&mut conn, 1).await;
    let key = ApiKey::generate();
    let now = Timestamp::now();
    let ended = NewKey {
        expire_time: Some(now.minus(3 * DAY)),
        ..NewKey::new(at.fixture.account, &key, Role::Owner)
    };
    keys::insert(&mut at.conn, ended, now).await.unwrap();

    assert!(sessions::end(&mut conn, session.id).await.unwrap());
    assert!(!sessions::end(&mut conn, session.id).await.unwrap());
    assert!(!sessions::end(&mut conn, key.id).await.unwrap());
    assert!(!sessions::end(&mut conn, Id::generate()).await.unwrap());
    let found = keys::find(&mut conn, session.id).await.unwrap().unwrap();
    assert!(!found.is_valid(Timestamp::now()));
    let found = keys::find(&mut conn, key.id).await.unwrap().unwrap();
    assert_eq!(found.revoke_time, None);

    assert_eq!(sessions::purge(&mut conn, DAY, 10).await.unwrap(), 0);
    let older = "UPDATE api_keys SET expire_time = clock_timestamp() - interval '25 hours' WHERE person IS NOT NULL";
    assert_eq!(run(&mut at.conn, older).await, 1);
    assert_eq!(sessions::purge(&mut conn, DAY, 10).await.unwrap(), 1);
    assert_eq!(keys::find(&mut conn, session.id).await.unwrap(), None);
    let kept = keys::find(&mut conn, key.id).await.unwrap();
    assert!(kept.is_some());
}

#[tokio::test]
async fn session_belongs_to_a_person_and_ends_within_a_day() {
    let at = start().await;
    let account = at.fixture.account.to_uuid();
    let open = |named: &str, identified: &str, lasts: &str| {
        format!(
            "SELECT open_session(gen_random_uuid(), '{account}', sha256('x'), 'OWNER', {named}, {identified}, \
             interval '{lasts}')"
        )
    };
    let mut conn = gateway(&at).await;
    for statement in [
        open("NULL", "'7'", "1 hour"),
        open("'jane'", "NULL", "1 hour"),
        open("'jane'", "'7'", "25 hours"),
        // Less than a day for a comparison of intervals, and 14 years as a sum.
        open("'jane'", "'7'", "12000 mons -359999 days"),
    ] {
        let refused = sql_query(statement).execute(&mut conn).await.unwrap_err();
        assert!(refused.to_string().contains("within a day"), "{refused}");
    }
    for kept in ["23 hours", "-12000 mons 360002 days"] {
        let purge = format!("SELECT purge_sessions(interval '{kept}', 10)");
        let refused = sql_query(purge).execute(&mut conn).await.unwrap_err();
        assert!(refused.to_string().contains("for a day"), "{refused}");
    }
    for service in [Service::Compiler, Service::Scanner, Service::Dispatcher] {
        let url = at.database.url_of(service);
        let mut conn = AsyncPgConnection::establish(&url).await.unwrap();
        let statement = open("'jane'", "'7'", "1 hour");
        let refused = sql_query(statement).execute(&mut conn).await.unwrap_err();
        let refused = refused.to_string();
        assert!(refused.contains("permission denied"), "{refused}");
    }
}
