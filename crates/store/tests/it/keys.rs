use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
    list::NAMESPACE_FIELDS,
    namespace::CreateNamespace,
};
use store::{keys, namespaces};

use crate::support::{list_query, start};

#[tokio::test]
async fn a_key_is_found_until_it_expires_or_is_revoked() {
    let mut at = start().await;
    let now = Timestamp::now();
    let hour = std::time::Duration::from_secs(3_600);
    let key = ApiKey::generate();
    let narrowed = [at.fixture.namespace];
    keys::insert(
        &mut at.conn,
        at.fixture.account,
        &key,
        Role::Editor,
        Some(&narrowed),
        now,
        Some(now.plus(hour)),
    )
    .await
    .unwrap();

    let found = keys::find(&mut at.conn, key.id).await.unwrap().unwrap();
    assert_eq!(found.account_name, "acme");
    assert_eq!(found.role, Role::Editor);
    assert_eq!(found.namespaces.as_deref(), Some(&narrowed[..]));
    assert!(key.matches(&found.secret_hash) && !ApiKey::generate().matches(&found.secret_hash));
    assert!(found.is_valid(now) && !found.is_valid(now.plus(hour)));

    // The same id again changes nothing: `earshot dev` does so at each start.
    let account = at.fixture.account;
    keys::insert(&mut at.conn, account, &key, Role::Owner, None, now, None)
        .await
        .unwrap();
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
async fn an_account_is_made_once() {
    let mut at = start().await;
    let again = keys::ensure_account(&mut at.conn, "acme", Timestamp::now()).await;
    assert_eq!(again.unwrap(), at.fixture.account);
    let malformed = keys::ensure_account(&mut at.conn, "Not a name", Timestamp::now()).await;
    assert!(malformed.is_err());
}

#[tokio::test]
async fn a_narrowed_key_lists_its_namespaces_alone() {
    let mut at = start().await;
    let draft = CreateNamespace {
        nickname: "other".to_owned(),
        mutes: Vec::new(),
    };
    namespaces::insert(&mut at.conn, at.fixture.account, &draft)
        .await
        .unwrap();
    let key = ApiKey::generate();
    let (account, ours, now) = (at.fixture.account, [at.fixture.namespace], Timestamp::now());
    keys::insert(
        &mut at.conn,
        account,
        &key,
        Role::Viewer,
        Some(&ours),
        now,
        None,
    )
    .await
    .unwrap();
    let list = list_query(NAMESPACE_FIELDS, 10, None, "", "");
    for (key, count) in [(Some(key.id), 1), (None, 2)] {
        let page = namespaces::list(&mut at.conn, at.fixture.account, key, &list).await;
        assert_eq!(page.unwrap().items.len(), count, "{key:?}");
    }
}
