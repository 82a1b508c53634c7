use std::time::Duration;

use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
    list::NAMESPACE_FIELDS,
    namespace::CreateNamespace,
};
use store::{
    AsyncConnection, AsyncPgConnection, QueryResult,
    keys::{self, NewKey, Rotation, SessionFilter},
    namespaces,
};

use crate::support::{Reads, Start, list_query, reads, run, start};

#[tokio::test]
async fn a_key_is_found_until_it_expires_or_is_revoked() {
    let mut at = start().await;
    let now = Timestamp::now();
    let hour = Duration::from_secs(3_600);
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

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Stores a key that expires after `lifetime`.
async fn stored(at: &mut Start, lifetime: Option<Duration>, now: Timestamp) -> Id {
    let key = ApiKey::generate();
    let new = NewKey {
        expire_time: lifetime.map(|time| now.plus(time)),
        ..NewKey::new(at.fixture.account, &key, Role::Editor)
    };
    keys::insert(&mut at.conn, new, now).await.unwrap();
    key.id
}

/// Rotates a key at `now` with a grace of an hour. Returns the id of the new key, too.
async fn rotated(conn: &mut AsyncPgConnection, id: Id, now: Timestamp) -> (Rotation, Id) {
    let new = ApiKey::generate();
    let rotation = conn
        .transaction(async |conn| keys::rotate(conn, id, &new, now.plus(HOUR), now).await)
        .await
        .unwrap();
    (rotation, new.id)
}

#[tokio::test]
async fn rotated_keys_work_together_until_the_grace_ends() {
    let mut at = start().await;
    let now = Timestamp::now();
    let (made, account) = (now.minus(DAY), at.fixture.account);
    for (lifetime, old_expires, new_expires) in [
        (None, now.plus(HOUR), None),
        (Some(DAY * 90), now.plus(HOUR), Some(now.plus(DAY * 90))),
        // It never works longer than before.
        (
            Some(DAY + HOUR / 2),
            now.plus(HOUR / 2),
            Some(now.plus(DAY + HOUR / 2)),
        ),
    ] {
        let old = stored(&mut at, lifetime, made).await;
        let (rotation, new) = rotated(&mut at.conn, old, now).await;
        let done = Rotation::Done {
            account,
            old_expires,
            new_expires,
        };
        assert_eq!(rotation, done);
        let found = keys::find(&mut at.conn, old).await.unwrap().unwrap();
        assert_eq!(found.replaced_by, Some(new));
        assert!(found.is_valid(now) && !found.is_valid(old_expires));
        let found = keys::find(&mut at.conn, new).await.unwrap().unwrap();
        assert_eq!(found.role, Role::Editor);
        assert_eq!(found.expire_time, new_expires);
        assert!(found.is_valid(now) && found.is_valid(old_expires));
    }
}

#[tokio::test]
async fn key_is_replaced_once_and_its_successor_has_its_whole_lifetime() {
    let mut at = start().await;
    let now = Timestamp::now();
    let first = stored(&mut at, Some(DAY * 90), now).await;
    let (_, second) = rotated(&mut at.conn, first, now).await;
    // Its caller died before it printed the second key, and rotates again.
    let (refused, _) = rotated(&mut at.conn, first, now).await;
    assert_eq!(refused, Rotation::Replaced(second));
    let (_, third) = rotated(&mut at.conn, second, now).await;
    let (refused, _) = rotated(&mut at.conn, first, now).await;
    assert_eq!(refused, Rotation::Replaced(third));
    let newest = keys::find(&mut at.conn, third).await.unwrap().unwrap();
    assert_eq!(newest.expire_time, Some(now.plus(DAY * 90)));

    // Once the third is revoked, the first needs another successor.
    keys::revoke(&mut at.conn, third, now).await.unwrap();
    let later = now.plus(HOUR / 2);
    let (rotation, _) = rotated(&mut at.conn, first, later).await;
    let done = Rotation::Done {
        account: at.fixture.account,
        old_expires: now.plus(HOUR),
        new_expires: Some(later.plus(DAY * 90)),
    };
    assert_eq!(rotation, done);
}

#[tokio::test]
async fn key_that_ended_is_not_rotated() {
    let mut at = start().await;
    let now = Timestamp::now();
    let old = stored(&mut at, None, now).await;
    let (_, new) = rotated(&mut at.conn, old, now).await;
    keys::revoke(&mut at.conn, old, now).await.unwrap();
    let expired = stored(&mut at, Some(HOUR), now.minus(HOUR)).await;
    for (id, wanted) in [
        (old, Rotation::Ended),
        (expired, Rotation::Ended),
        (Id::generate(), Rotation::Missing),
    ] {
        let (rotation, _) = rotated(&mut at.conn, id, now).await;
        assert_eq!(rotation, wanted);
    }
    // The end of the old key does not end the new one.
    let new = keys::find(&mut at.conn, new).await.unwrap().unwrap();
    assert!(new.is_valid(now));
    assert_eq!(keys::list(&mut at.conn).await.unwrap().len(), 3);
}

#[tokio::test]
async fn session_is_neither_rotated_nor_reported_as_expiring() {
    let mut at = start().await;
    let now = Timestamp::now();
    let session = stored(&mut at, Some(HOUR), now).await;
    keys::record_uses(&mut at.conn, &[(session, now)])
        .await
        .unwrap();
    at.database
        .run("UPDATE api_keys SET person = 'ada@example.com'")
        .await;
    let (rotation, _) = rotated(&mut at.conn, session, now).await;
    assert_eq!(rotation, Rotation::Session);
    let expiring = keys::expiring(&mut at.conn, now).await.unwrap();
    assert!(expiring.is_empty(), "{expiring:?}");
}

#[tokio::test]
async fn two_rotations_at_once_make_one_key() {
    let mut at = start().await;
    let now = Timestamp::now();
    let old = stored(&mut at, None, now).await;
    let mut other = at.database.connect().await;
    let (one, two) = tokio::join!(
        rotated(&mut at.conn, old, now),
        rotated(&mut other, old, now)
    );
    let (done, refused) = match one.0 {
        Rotation::Done { .. } => (one, two),
        _ => (two, one),
    };
    assert!(matches!(done.0, Rotation::Done { .. }), "{done:?}");
    assert_eq!(refused.0, Rotation::Replaced(done.1));
    assert_eq!(keys::list(&mut at.conn).await.unwrap().len(), 2);
}

#[tokio::test]
async fn rotation_waits_for_one_of_a_successor() {
    let mut at = start().await;
    let now = Timestamp::now();
    let first = stored(&mut at, None, now).await;
    let (_, second) = rotated(&mut at.conn, first, now).await;
    let (_, third) = rotated(&mut at.conn, second, now).await;
    keys::revoke(&mut at.conn, third, now).await.unwrap();

    let (mut other, fourth) = (at.database.connect().await, ApiKey::generate());
    run(&mut other, "BEGIN").await;
    let rotation = keys::rotate(&mut other, second, &fourth, now.plus(HOUR), now).await;
    assert!(matches!(rotation, Ok(Rotation::Done { .. })));
    run(&mut at.conn, "SET lock_timeout = '100ms'").await;
    let fifth = ApiKey::generate();
    let early = keys::rotate(&mut at.conn, first, &fifth, now.plus(HOUR), now).await;
    assert!(early.is_err(), "{early:?}");
    run(&mut other, "COMMIT").await;
    let (refused, _) = rotated(&mut at.conn, first, now).await;
    assert_eq!(refused, Rotation::Replaced(fourth.id));
    assert_eq!(keys::list(&mut at.conn).await.unwrap().len(), 4);
}

#[tokio::test]
async fn rotation_whose_process_dies_before_the_commit_changes_nothing() {
    let mut at = start().await;
    let now = Timestamp::now();
    let old = stored(&mut at, None, now).await;
    let mut dying = at.database.connect().await;
    run(&mut dying, "BEGIN").await;
    let lost = ApiKey::generate();
    let rotation = keys::rotate(&mut dying, old, &lost, now.plus(HOUR), now).await;
    assert!(matches!(rotation, Ok(Rotation::Done { .. })));
    drop(dying);
    let (rotation, _) = rotated(&mut at.conn, old, now).await;
    assert!(matches!(rotation, Rotation::Done { .. }), "{rotation:?}");
    assert_eq!(keys::find(&mut at.conn, lost.id).await.unwrap(), None);
}

#[tokio::test]
async fn replaced_key_is_in_use_only_if_it_was_used_since() {
    let mut at = start().await;
    let now = Timestamp::now();
    let old = stored(&mut at, None, now).await;
    keys::record_uses(&mut at.conn, &[(old, now)])
        .await
        .unwrap();
    rotated(&mut at.conn, old, now).await;
    let expiring = keys::expiring(&mut at.conn, now).await.unwrap();
    assert!(expiring.is_empty(), "{expiring:?}");
    keys::record_uses(&mut at.conn, &[(old, now.plus(HOUR / 2))])
        .await
        .unwrap();
    let expiring = keys::expiring(&mut at.conn, now).await.unwrap();
    assert_eq!(expiring[0].id, old);
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
    let minutes = |minutes: u64| now.plus(Duration::from_secs(minutes * 60));
    let unknown = Id::generate();
    for used in [minutes(1), now] {
        let uses = [(unknown, used), (key.id, used)];
        keys::record_uses(&mut at.conn, &uses).await.unwrap();
    }
    let used = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(used.last_use_time, Some(minutes(1)));
    let almost = minutes(2).minus(Duration::from_micros(1));
    assert!(!used.is_use_outdated(almost) && used.is_use_outdated(minutes(2)));
}

#[tokio::test]
async fn uses_of_keys_are_stored_while_another_key_is_locked() {
    let mut at = start().await;
    let now = Timestamp::now();
    let made = [ApiKey::generate(), ApiKey::generate()];
    for key in &made {
        let new = NewKey::new(at.fixture.account, key, Role::Owner);
        keys::insert(&mut at.conn, new, now).await.unwrap();
    }
    let [locked, free] = made.map(|key| key.id);
    let mut other = at.database.connect().await;
    run(&mut other, "SET lock_timeout = '100ms'").await;
    let uses = [(locked, now), (free, now)];
    at.conn
        .transaction(async |conn| {
            keys::lock(conn, locked).await?;
            keys::record_uses(&mut other, &uses).await
        })
        .await
        .unwrap();
    for (id, last_use) in [(locked, None), (free, Some(now))] {
        let key = keys::find(&mut at.conn, id).await.unwrap().unwrap();
        assert_eq!(key.last_use_time, last_use);
    }
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
    let account = at.fixture.account;
    let others = ["10.2.0.0/16"].map(|text| text.parse().unwrap());
    for (networks, allowed) in [
        (Some(&others[..]), true),
        (Some(&others[..0]), false),
        (None, true),
    ] {
        let set = keys::set_networks(&mut at.conn, key.id, networks).await;
        assert_eq!(set.unwrap(), Some(account));
        let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
        assert_eq!(found.networks.as_deref(), networks);
        assert_eq!(found.allows("10.2.0.1".parse().unwrap()), allowed);
    }
    // A network that cannot be read opens nothing.
    at.database
        .run("UPDATE api_keys SET networks = '{everywhere}'")
        .await;
    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert!(!found.allows("10.1.0.1".parse().unwrap()));

    keys::revoke(&mut at.conn, key.id, now).await.unwrap();
    for id in [key.id, Id::generate()] {
        let set = keys::set_networks(&mut at.conn, id, None).await;
        assert_eq!(set.unwrap(), None);
    }
}

#[tokio::test]
async fn expiring_keys_are_valid_in_use_and_end_within_14_days() {
    let mut at = start().await;
    let now = Timestamp::now();
    let days = |days: u64| now.plus(Duration::from_secs(days * 86_400));
    let created = now.minus(Duration::from_secs(90 * 86_400));
    let mut wanted = Vec::new();
    for (expires, used, is_revoked, is_expiring) in [
        (Some(days(13)), Some(now), false, true),
        (Some(days(1)), Some(now), false, true),
        (Some(days(1)), Some(now), true, false),
        (Some(days(1)), None, false, false),
        (Some(days(15)), Some(now), false, false),
        (Some(now), Some(now), false, false),
        (None, Some(now), false, false),
    ] {
        let key = ApiKey::generate();
        let new = NewKey {
            expire_time: expires,
            ..NewKey::new(at.fixture.account, &key, Role::Owner)
        };
        keys::insert(&mut at.conn, new, created).await.unwrap();
        if let Some(time) = used {
            keys::record_uses(&mut at.conn, &[(key.id, time)])
                .await
                .unwrap();
        }
        if is_revoked {
            keys::revoke(&mut at.conn, key.id, now).await.unwrap();
        }
        if is_expiring {
            wanted.insert(0, key.id);
        }
    }
    let found = keys::expiring(&mut at.conn, now).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|key| key.id).collect();
    assert_eq!(found, wanted);
    // The last uses are too long ago.
    at.database
        .run("UPDATE api_keys SET last_use_time = now() - interval '31 days'")
        .await;
    let unused = keys::expiring(&mut at.conn, now).await.unwrap();
    assert!(unused.is_empty(), "{unused:?}");
}

#[tokio::test]
async fn key_with_a_short_life_expires_soon_in_its_last_quarter() {
    let mut at = start().await;
    let created = Timestamp::now();
    let key = stored(&mut at, Some(8 * HOUR), created).await;
    for (age, is_expiring) in [(5 * HOUR, false), (7 * HOUR, true), (9 * HOUR, false)] {
        let now = created.plus(age);
        keys::record_uses(&mut at.conn, &[(key, now)])
            .await
            .unwrap();
        let expiring = keys::expiring(&mut at.conn, now).await.unwrap();
        assert_eq!(!expiring.is_empty(), is_expiring, "{age:?}");
    }
}

#[tokio::test]
async fn sessions_that_ended_are_not_read_with_valid_ones_and_keys_that_expire() {
    let mut at = start().await;
    let ended = format!(
        "INSERT INTO api_keys (id, account_id, secret_hash, role, create_time, expire_time, person, subject) \
         SELECT gen_random_uuid(), '{}', sha256('x'), 'OWNER', ended - interval '8 hours', ended, 'jane', '7' \
         FROM generate_series(now() - interval '400 days', now() - interval '2 days', '3 hours') AS ended",
        at.fixture.account.to_uuid()
    );
    assert!(run(&mut at.conn, ended).await > 3_000);
    run(&mut at.conn, "ANALYZE api_keys").await;
    let mut conn = at.database.connect().await;
    run(&mut conn, "BEGIN").await;
    let expiring = keys::expiring(&mut conn, Timestamp::now()).await.unwrap();
    let valid = keys::list_sessions(&mut conn, SessionFilter::default());
    assert_eq!((expiring, valid.await.unwrap()), (vec![], vec![]));
    let Reads { whole, .. } = reads(&mut conn).await;
    assert_eq!(whole, "");
}
