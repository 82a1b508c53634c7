use domain::{
    Connection, ConnectionName, Id, ServiceEventType, Timestamp,
    connection::{ConnectionChange, ConnectionState, CreateConnection, Format, Headers, Method},
    list::CONNECTION_FIELDS,
};
use store::{connections, seal::Sealer};

use crate::support::{list_query, start};

fn sealer(keys: &[(&str, u8)]) -> Sealer {
    Sealer::new(
        keys.iter()
            .map(|(id, byte)| ((*id).to_owned(), [*byte; 32])),
    )
    .unwrap()
}

const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";

fn draft() -> CreateConnection {
    CreateConnection {
        nickname: "hook".to_owned(),
        url: "https://receiver.example/hook".to_owned(),
        method: Method::Put,
        headers: Headers([("x-secret".to_owned(), "hush".to_owned())].into()),
        format: Format::Slack,
        max_per_second: Some(50),
        signing_secrets: vec![SECRET.parse().unwrap()],
        events: vec![ServiceEventType::CoverageGap],
        digest: None,
    }
}

#[tokio::test]
async fn headers_stay_readable_while_their_key_is_configured() {
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let (old, both, new) = (
        sealer(&[("old", 1)]),
        sealer(&[("new", 2), ("old", 1)]),
        sealer(&[("new", 2)]),
    );
    let by_old = connections::insert(&mut at.conn, &old, namespace, &draft())
        .await
        .unwrap();
    let by_new = connections::insert(&mut at.conn, &both, namespace, &draft())
        .await
        .unwrap();

    for connection in [&by_old, &by_new] {
        let found = connections::get(&mut at.conn, &both, connection.name).await;
        assert_eq!(found.unwrap().as_ref(), Some(connection));
    }
    let found = connections::get(&mut at.conn, &new, by_new.name).await;
    assert_eq!(found.unwrap(), Some(by_new));
    // Without its key, or with a different key of the same id, the Connection is returned and its headers are
    // masked.
    for sealer in [&new, &sealer(&[("other", 1)]), &sealer(&[("old", 9)])] {
        let found = connections::get(&mut at.conn, sealer, by_old.name).await;
        let found = found.unwrap().unwrap();
        assert_eq!(found.headers, Headers::unreadable());
        assert_eq!(found.nickname, by_old.nickname);
    }
    let list = list_query(CONNECTION_FIELDS, 10, None, "", "");
    let page = connections::list(&mut at.conn, &both, namespace, &list)
        .await
        .unwrap();
    assert_eq!(page.items.len(), 2);
    // An unreadable Connection does not hide the others.
    let page = connections::list(&mut at.conn, &new, namespace, &list)
        .await
        .unwrap();
    let readable = |connection: &Connection| connection.headers != Headers::unreadable();
    let readable: Vec<bool> = page.items.iter().map(readable).collect();
    assert_eq!(readable, [true, false]);
}

#[tokio::test]
async fn a_connection_of_another_namespace_is_not_found() {
    let mut at = start().await;
    let name = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let elsewhere = ConnectionName {
        namespace: Id::generate(),
        ..name
    };
    let found = connections::get(&mut at.conn, &at.fixture.sealer, elsewhere).await;
    assert_eq!(found.unwrap(), None);
    let ids = [name.connection, Id::generate()];
    let existing = connections::lock_existing(&mut at.conn, at.fixture.namespace, &ids).await;
    assert_eq!(existing.unwrap(), [name.connection]);
    let existing = connections::lock_existing(&mut at.conn, elsewhere.namespace, &ids).await;
    assert!(existing.unwrap().is_empty());
}

#[tokio::test]
async fn a_disabled_connection_keeps_its_first_reason() {
    let mut at = start().await;
    let name = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let now = Timestamp::now();
    assert!(
        connections::disable(&mut at.conn, name, "gone", now)
            .await
            .unwrap()
    );
    assert!(
        !connections::disable(&mut at.conn, name, "other", now)
            .await
            .unwrap()
    );
    let found = connections::get(&mut at.conn, &at.fixture.sealer, name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(found.state, ConnectionState::Disabled);
    assert_eq!(found.state_reason.as_deref(), Some("gone"));
    assert_eq!(found.update_time, now);
}

#[tokio::test]
async fn a_new_address_closes_the_breaker_and_a_reseal_does_not() {
    let mut at = start().await;
    let (old, both) = (sealer(&[("old", 1)]), sealer(&[("new", 2), ("old", 1)]));
    let namespace = at.fixture.namespace;
    let mut connection = connections::insert(&mut at.conn, &old, namespace, &draft())
        .await
        .unwrap();
    let open = "UPDATE connection_lanes SET open_until = now() + interval '1 hour', failing_since = now(), \
                open_count = 3, recent_outcomes = 7, recent_count = 3, next_due_time = now() + interval '1 hour'";
    let closed = "connection_lanes WHERE open_until IS NULL AND failing_since IS NULL AND open_count = 0 \
                  AND recent_outcomes = 0 AND next_due_time <= clock_timestamp()";
    let url = |url: &str| ConnectionChange {
        url: Some(url.to_owned()),
        ..ConnectionChange::default()
    };
    let nickname = ConnectionChange {
        nickname: Some("other".to_owned()),
        ..ConnectionChange::default()
    };
    let address = "https://receiver.example/other";
    // Sending the same address again is how an owner asks for a try.
    for (change, closes) in [(url(address), 1), (url(address), 1), (nickname, 0)] {
        at.database.run(open).await;
        let now = Timestamp::now();
        connection = connections::update(&mut at.conn, &old, connection, &change, now)
            .await
            .unwrap();
        assert_eq!(connection.url, address);
        assert_eq!(at.database.count(closed).await, closes, "{change:?}");
    }

    at.database.run(open).await;
    let done = connections::reseal(&mut at.conn, &both, None, 10).await;
    assert_eq!(done.unwrap().changed, 1);
    assert_eq!(at.database.count(closed).await, 0);
    let found = connections::get(&mut at.conn, &both, connection.name).await;
    assert_eq!(found.unwrap(), Some(connection));
}

/// Rows of the previous release still work, and `reseal` seals them.
#[tokio::test]
async fn reseal_seals_addresses_that_were_stored_in_the_clear() {
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let sealer = sealer(&[("new", 1)]);
    let made = connections::insert(&mut at.conn, &sealer, namespace, &draft()).await;
    let name = made.unwrap().name;
    let stored = at.database.texts("url", "connections").await;
    assert_eq!(stored, [""]);
    let url = draft().url;
    let endpoint = connections::endpoint(&mut at.conn, &sealer, name).await;
    assert_eq!(endpoint.unwrap().unwrap().url, url);

    // Changed by the previous release.
    let clear = "https://receiver.example/other";
    at.database
        .run(&format!("UPDATE connections SET url = '{clear}'"))
        .await;
    for changed in [1, 0] {
        let endpoint = connections::endpoint(&mut at.conn, &sealer, name).await;
        assert_eq!(endpoint.unwrap().unwrap().url, clear);
        let done = connections::reseal(&mut at.conn, &sealer, None, 10).await;
        assert_eq!(done.unwrap().changed, changed);
    }
    assert_eq!(at.database.texts("url", "connections").await, [""]);
    let found = connections::get(&mut at.conn, &sealer, name).await;
    assert_eq!(found.unwrap().unwrap().url, clear);
}

#[tokio::test]
async fn the_old_key_is_not_needed_after_a_reseal() {
    let mut at = start().await;
    let namespace = at.fixture.namespace;
    let (old, both, new) = (
        sealer(&[("old", 1)]),
        sealer(&[("new", 2), ("old", 1)]),
        sealer(&[("new", 2)]),
    );
    let lost = sealer(&[("lost", 3)]);
    let mut plain = draft();
    plain.signing_secrets.clear();
    let mut made = Vec::new();
    for (sealer, draft) in [(&old, draft()), (&old, plain), (&both, draft())] {
        let connection = connections::insert(&mut at.conn, sealer, namespace, &draft);
        made.push((connection.await.unwrap(), draft));
    }
    let unreadable = connections::insert(&mut at.conn, &lost, namespace, &draft())
        .await
        .unwrap();

    let (mut changed, mut refused, mut after) = (0, Vec::new(), None);
    loop {
        let done = connections::reseal(&mut at.conn, &both, after, 2)
            .await
            .unwrap();
        changed += done.changed;
        refused.extend(done.unreadable.into_iter().map(|(name, _)| name));
        if done.last.is_none() {
            break;
        }
        after = done.last;
    }
    assert_eq!((changed, refused), (2, vec![unreadable.name]));
    for (connection, draft) in made {
        let found = connections::endpoint(&mut at.conn, &new, connection.name).await;
        let found = found.unwrap().unwrap();
        assert_eq!(found.url, draft.url);
        assert_eq!(found.headers, draft.headers);
        assert_eq!(found.signing_secrets, draft.signing_secrets);
    }
    let done = connections::reseal(&mut at.conn, &both, None, 10).await;
    assert_eq!(done.unwrap().changed, 0, "again");
}
