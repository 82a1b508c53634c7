//! An account with keys and a Namespace.

use anyhow::Result;
use domain::{
    Id, NamespaceName, Timestamp,
    key::{ApiKey, Role},
};
use serde_json::json;
use store::{AsyncPgConnection, keys};

use super::api::Api;

pub(super) struct Account {
    /// Name of the Namespace, `namespaces/<id>`.
    pub(super) namespace: String,
    pub(super) id: Id,
    pub(super) editors: Vec<String>,
    pub(super) viewers: Vec<String>,
    /// A key that is not used for the load, and so keeps its points.
    pub(super) owner: String,
    /// Another one for an attack.
    pub(super) second_owner: String,
}

impl Account {
    pub(super) async fn new(
        api: &Api,
        database_url: &str,
        name: &str,
        editors: usize,
        viewers: usize,
    ) -> Result<Self> {
        let mut conn = store::establish(database_url).await?;
        let account = keys::ensure_account(&mut conn, name, Timestamp::now()).await?;
        let owner = key(&mut conn, account, Role::Owner).await?;
        let second_owner = key(&mut conn, account, Role::Owner).await?;
        let mut created = [Vec::new(), Vec::new()];
        for ((role, count), keys) in [(Role::Editor, editors), (Role::Viewer, viewers)]
            .into_iter()
            .zip(&mut created)
        {
            for _ in 0..count {
                keys.push(key(&mut conn, account, role).await?);
            }
        }
        let body = json!({"nickname": name});
        let namespace = api.create("/v1/namespaces", &owner, &body).await?;
        let [editors, viewers] = created;
        Ok(Self {
            id: namespace.parse::<NamespaceName>()?.namespace,
            namespace,
            editors,
            viewers,
            owner,
            second_owner,
        })
    }
}

async fn key(conn: &mut AsyncPgConnection, account: Id, role: Role) -> Result<String> {
    let key = ApiKey::generate();
    let new = keys::NewKey::new(account, &key, role);
    keys::insert(conn, new, Timestamp::now()).await?;
    Ok(key.expose())
}
