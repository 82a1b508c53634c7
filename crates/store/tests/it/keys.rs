use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
    list::NAMESPACE_FIELDS,
    namespace::CreateNamespace,
};
use store::{
    AsyncConnection, QueryResult,
    keys::{self, NewKey},
    namespaces,
};

use crate::support::{list_query, run, start};

#[tokio::test]
async fn a_key_is_found_until_it_expires_or_is_revoked() {
    let mut at = start().await;
    let now = Timestamp::now();
    let hour = std::time::Duration::from_secs(3_600);
    let key = ApiKey::generate();
    let narrowed = [at.fixture.namespace];
    let new = NewKey {
        namespaces: Some(&narrowed),
        expire_time: Some(now.plus(hour)),
        ..NewKey::new(at.fixture.account, &key, Role::Editor)
    };
    keys::insert(&mut at.conn, new, now).await.unwrap();

    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(found.account_name, "acme");
    assert_eq!(found.role, Role::Editor);
    assert_eq!(found.namespaces.as_deref(), Some(&narrowed[..]));
    assert!(key.matches(&found.secret_hash) && !ApiKey::generate().matches(&found.secret_hash));
    assert!(found.is_valid(now) && !found.is_valid(now.plus(hour)));

    // The same id again changes nothing: `earshot dev` does so at each start.
    let same = NewKey::new(at.fixture.account, &key, Role::Owner);
    keys::insert(&mut at.conn, same, now).await.unwrap();
    assert_eq!(
        keys::find(&mut at.conn, key.id).await.unwrap().unwrap(),
        found
    );

    assert!(keys::revoke(&mut at.conn, key.id, now).await.unwrap());
    assert!(
        !keys::revoke(&mut at.conn, key.id, now.plus(hour))
            .await
            .unwrap()
    );
    let revoked = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(revoked.revoke_time, Some(now));
    assert!(!revoked.is_valid(now));

    assert_eq!(
        keys::find(&mut at.conn, Id::generate()).await.unwrap(),
        None
    );
    assert!(
        !keys::revoke(&mut at.conn, Id::generate(), now)
            .await
            .unwrap()
    );
    assert_eq!(keys::list(&mut at.conn).await.unwrap(), [revoked]);
}

#[tokio::test]
async fn an_account_is_created_once() {
    let mut at = start().await;
    let again = keys::ensure_account(&mut at.conn, "acme", Timestamp::now()).await;
    assert_eq!(again.unwrap(), at.fixture.account);
    let malformed = keys::ensure_account(&mut at.conn, "Not a name", Timestamp::now()).await;
    assert!(malformed.is_err());
}

#[tokio::test]
async fn a_narrowed_key_lists_only_its_namespaces() {
    let mut at = start().await;
    let draft = CreateNamespace {
        nickname: "other".to_owned(),
        mutes: Vec::new(),
    };
    namespaces::insert(
        &mut at.conn,
        at.fixture.account,
        &draft,
        &test_support::QUOTAS,
    )
    .await
    .unwrap();
    let key = ApiKey::generate();
    let ours = [at.fixture.namespace];
    let new = NewKey {
        namespaces: Some(&ours),
        ..NewKey::new(at.fixture.account, &key, Role::Viewer)
    };
    keys::insert(&mut at.conn, new, Timestamp::now())
        .await
        .unwrap();
    let list = list_query(NAMESPACE_FIELDS, 10, None, "", "");
    for (key, count) in [(Some(key.id), 1), (None, 2)] {
        let page = namespaces::list(&mut at.conn, at.fixture.account, key, &list).await;
        assert_eq!(page.unwrap().items.len(), count, "{key:?}");
    }
}

#[tokio::test]
async fn key_expires_earlier_but_never_later() {
    let mut at = start().await;
    let (key, now) = (ApiKey::generate(), Timestamp::now());
    let hours = |hours: u64| now.plus(std::time::Duration::from_secs(hours * 3_600));
    let new = NewKey::new(at.fixture.account, &key, Role::Owner);
    keys::insert(&mut at.conn, new, now).await.unwrap();
    for (time, changes) in [(hours(2), true), (hours(3), false), (hours(1), true)] {
        let changed = keys::expire_by(&mut at.conn, key.id, time).await.unwrap();
        assert_eq!(changed, changes, "{time}");
    }
    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(found.expire_time, Some(hours(1)));
    keys::revoke(&mut at.conn, key.id, now).await.unwrap();
    assert!(!keys::expire_by(&mut at.conn, key.id, now).await.unwrap());
}

#[tokio::test]
async fn locked_key_is_not_revoked_before_the_end_of_the_transaction() {
    let mut at = start().await;
    let (key, now) = (ApiKey::generate(), Timestamp::now());
    let new = NewKey::new(at.fixture.account, &key, Role::Owner);
    keys::insert(&mut at.conn, new, now).await.unwrap();
    let mut other = at.database.connect().await;
    run(&mut other, "SET lock_timeout = '100ms'").await;
    at.conn
        .transaction(async |conn| {
            keys::lock(conn, key.id).await?;
            let revoked = keys::revoke(&mut other, key.id, now).await;
            assert!(revoked.is_err(), "{revoked:?}");
            QueryResult::Ok(())
        })
        .await
        .unwrap();
    assert!(keys::revoke(&mut other, key.id, now).await.unwrap());
}

#[tokio::test]
async fn last_use_of_a_key_never_goes_back() {
    let mut at = start().await;
    let (key, now) = (ApiKey::generate(), Timestamp::now());
    let new = NewKey::new(at.fixture.account, &key, Role::Owner);
    keys::insert(&mut at.conn, new, now).await.unwrap();
    let never = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert!(never.last_use_time.is_none() && never.is_use_outdated(now));
    let minutes = |minutes: u64| now.plus(std::time::Duration::from_secs(minutes * 60));
    for used in [minutes(1), now] {
        keys::record_use(&mut at.conn, key.id, used).await.unwrap();
    }
    let used = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(used.last_use_time, Some(minutes(1)));
    assert!(!used.is_use_outdated(minutes(10)) && used.is_use_outdated(minutes(11)));
}

#[tokio::test]
async fn key_is_allowed_from_its_networks_only() {
    let mut at = start().await;
    let (key, now) = (ApiKey::generate(), Timestamp::now());
    let networks = ["10.1.0.0/16", "2001:db8::/32"].map(|text| text.parse().unwrap());
    let new = NewKey {
        networks: Some(&networks),
        ..NewKey::new(at.fixture.account, &key, Role::Owner)
    };
    keys::insert(&mut at.conn, new, now).await.unwrap();
    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    for (address, allowed) in [
        ("10.1.255.1", true),
        ("10.2.0.1", false),
        ("::ffff:10.1.0.1", true),
        ("2001:db8::1", true),
        ("2001:db9::1", false),
    ] {
        assert_eq!(found.allows(address.parse().unwrap()), allowed, "{address}");
    }
    // A network that cannot be read opens nothing.
    at.database
        .run("UPDATE api_keys SET networks = '{everywhere}'")
        .await;
    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert!(!found.allows("10.1.0.1".parse().unwrap()));
}
