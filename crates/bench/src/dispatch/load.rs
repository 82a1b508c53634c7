//! Rows for the dispatcher to deliver. They are created by the service's own statements where those are part of the
//! measurement, and in bulk otherwise.

use std::time::Duration;

use anyhow::{Result, ensure};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Integer, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, Id, Instructions, ManagerName, ScanName, Timestamp,
    connection::{CreateConnection, Headers, Method},
};
use store::{connections, keys, namespaces, seal::Sealer};

/// Rows per statement.
const BULK: usize = 5_000;

pub(crate) struct Load {
    conn: AsyncPgConnection,
    sealer: Sealer,
    namespace: Id,
}

impl Load {
    pub(crate) async fn new(url: &str) -> Result<Self> {
        let mut conn = store::establish(url).await?;
        let account = keys::ensure_account(&mut conn, "bench", Timestamp::now()).await?;
        let draft = domain::namespace::CreateNamespace {
            nickname: "bench".to_owned(),
            mutes: Vec::new(),
        };
        let namespace = namespaces::insert(&mut conn, account, &draft, &crate::QUOTAS).await?;
        Self::of(url, namespace.name.namespace).await
    }

    /// Creates rows in a Namespace that exists.
    pub(crate) async fn of(url: &str, namespace: Id) -> Result<Self> {
        Ok(Self {
            conn: store::establish(url).await?,
            sealer: Sealer::new([("bench".to_owned(), *b"0123456789abcdef0123456789abcdef")])?,
            namespace,
        })
    }

    pub(crate) async fn connections(
        &mut self,
        count: u32,
        url: &str,
    ) -> Result<Vec<ConnectionName>> {
        let mut made = Vec::new();
        for _ in 0..count {
            let draft = CreateConnection {
                nickname: "bench".to_owned(),
                url: url.to_owned(),
                method: Method::Post,
                headers: Headers([("authorization".to_owned(), "Bearer bench".to_owned())].into()),
                format: domain::connection::Format::default(),
                max_per_second: None,
                signing_secrets: Vec::new(),
                events: Vec::new(),
                digest: None,
            };
            let connection =
                connections::insert(&mut self.conn, &self.sealer, self.namespace, &draft).await?;
            made.push(connection.name);
        }
        Ok(made)
    }

    /// Creates a Manager for each Connection.
    pub(crate) async fn managers(
        &mut self,
        connections: &[ConnectionName],
    ) -> Result<Vec<ManagerName>> {
        let mut made = Vec::new();
        for connection in connections {
            let manager = ManagerName {
                namespace: self.namespace,
                manager: Id::generate(),
            };
            let instructions = serde_json::to_string(&Instructions::default())?;
            sql_query(format!(
                "INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, submitted_instructions, \
                     submit_time, create_time, update_time) \
                 VALUES ($1, $2, 'bench', true, 'MANUAL', 'FORUM', 'APPLIED', '{instructions}', now(), now(), now())"
            ))
            .bind::<SqlUuid, _>(manager.namespace.to_uuid())
            .bind::<SqlUuid, _>(manager.manager.to_uuid())
            .execute(&mut self.conn)
            .await?;
            sql_query("INSERT INTO manager_notices VALUES ($1, $2, 0, $3)")
                .bind::<SqlUuid, _>(manager.namespace.to_uuid())
                .bind::<SqlUuid, _>(manager.manager.to_uuid())
                .bind::<SqlUuid, _>(connection.connection.to_uuid())
                .execute(&mut self.conn)
                .await?;
            made.push(manager);
        }
        Ok(made)
    }

    /// Creates waiting deliveries, spread evenly over the Connections, each for a separate Scan.
    pub(crate) async fn backlog(
        &mut self,
        connections: &[ConnectionName],
        count: u32,
    ) -> Result<()> {
        self.deliveries(connections, count, "'PENDING', now(), 0, NULL")
            .await?;
        store::lanes::mark_due(&mut self.conn, connections).await?;
        Ok(())
    }

    /// Creates deliveries with these values of `state`, `next_attempt_time`, `attempt_count` and `last_attempt_time`.
    async fn deliveries(
        &mut self,
        connections: &[ConnectionName],
        count: u32,
        values: &str,
    ) -> Result<()> {
        // Deliveries of a deleted Manager are not sent.
        let manager = self.managers(&connections[..1]).await?[0].manager;
        let ids: Vec<Id> = (0..count).map(|_| Id::generate()).collect();
        for (number, ids) in ids.chunks(BULK).enumerate() {
            self.store(manager, ids, true).await?;
            let connections: Vec<_> = (0..ids.len())
                .map(|at| connections[(number * BULK + at) % connections.len()])
                .map(|name| name.connection.to_uuid())
                .collect();
            sql_query(format!(
                "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, \
                     state, next_attempt_time, attempt_count, last_attempt_time) \
                 SELECT $1, connection, id, time, now(), $2, id, {values} \
                 FROM unnest($3, $4, $5) AS given (id, time, connection)"
            ))
            .bind::<SqlUuid, _>(self.namespace.to_uuid())
            .bind::<SqlUuid, _>(manager.to_uuid())
            .bind::<Array<SqlUuid>, _>(ids.iter().map(|id| id.to_uuid()).collect::<Vec<_>>())
            .bind::<Array<Timestamptz>, _>(
                ids.iter().map(|id| id.time().to_chrono()).collect::<Vec<_>>(),
            )
            .bind::<Array<SqlUuid>, _>(connections)
            .execute(&mut self.conn)
            .await?;
        }
        sql_query("ANALYZE").execute(&mut self.conn).await?;
        Ok(())
    }

    /// Creates deliveries that succeeded once.
    pub(crate) async fn history(
        &mut self,
        connections: &[ConnectionName],
        count: u32,
    ) -> Result<()> {
        self.deliveries(connections, count, "'SUCCEEDED', NULL, 1, now()")
            .await?;
        sql_query("VACUUM ANALYZE deliveries")
            .execute(&mut self.conn)
            .await?;
        Ok(())
    }

    /// Stores posts and their Scans in bulk.
    pub(crate) async fn store(&mut self, manager: Id, ids: &[Id], fanned_out: bool) -> Result<()> {
        let (uuids, times): (Vec<_>, Vec<_>) = ids
            .iter()
            .map(|id| (id.to_uuid(), id.time().to_chrono()))
            .unzip();
        sql_query(
            "INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, text, url, subforum_id, \
                 subforum_name, subforum_url, user_id, user_name, user_url) \
             SELECT id, time, id, 'hackernews:newest', 'FORUM_LINK', time, 'hackernews:' || id, \
                 'A title about as long as titles are', repeat('Some text of a post. ', 15), \
                 'https://news.example/item?id=' || id, 's', 'Sub', 'https://news.example/s', 'u', 'User', \
                 'https://news.example/u' \
             FROM unnest($1, $2) AS given (id, time)",
        )
        .bind::<Array<SqlUuid>, _>(&uuids)
        .bind::<Array<Timestamptz>, _>(&times)
        .execute(&mut self.conn)
        .await?;
        sql_query(format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, \
                 matched, fanned_out) \
             SELECT $1, $2, id, time, time, id, time, true, '{{\"score\": 1.0, \"terms\": []}}', {fanned_out} \
             FROM unnest($3, $4) AS given (id, time)"
        ))
        .bind::<SqlUuid, _>(self.namespace.to_uuid())
        .bind::<SqlUuid, _>(manager.to_uuid())
        .bind::<Array<SqlUuid>, _>(&uuids)
        .bind::<Array<Timestamptz>, _>(&times)
        .execute(&mut self.conn)
        .await?;
        Ok(())
    }

    /// Stores Scans without events, the same number for each Manager, in transactions of a few hundred.
    pub(crate) async fn scans(&mut self, managers: &[ManagerName], count: u32) -> Result<()> {
        let each = usize::try_from(count)? / managers.len();
        for manager in managers {
            let ids: Vec<Id> = (0..each).map(|_| Id::generate()).collect();
            for ids in ids.chunks(500) {
                self.commit(*manager, ids).await?;
            }
        }
        Ok(())
    }

    /// Stores Scans in one transaction, like the scanner.
    pub(crate) async fn commit(
        &mut self,
        manager: ManagerName,
        ids: &[Id],
    ) -> Result<Vec<ScanName>> {
        let names: Vec<ScanName> = ids
            .iter()
            .map(|id| ScanName {
                namespace: manager.namespace,
                manager: manager.manager,
                scan: *id,
            })
            .collect();
        sql_query("BEGIN").execute(&mut self.conn).await?;
        self.store(manager.manager, ids, false).await?;
        sql_query("COMMIT").execute(&mut self.conn).await?;
        Ok(names)
    }

    /// Sets the rate limit of all Connections.
    pub(crate) async fn limit(&mut self, per_second: i32) -> Result<()> {
        sql_query("UPDATE connections SET max_per_second = $1 WHERE namespace_id = $2")
            .bind::<Integer, _>(per_second)
            .bind::<SqlUuid, _>(self.namespace.to_uuid())
            .execute(&mut self.conn)
            .await?;
        Ok(())
    }

    pub(crate) async fn count(&mut self, from: &str) -> Result<i64> {
        #[derive(QueryableByName)]
        struct Count {
            #[diesel(sql_type = BigInt)]
            count: i64,
        }
        let query = sql_query(format!("SELECT count(*) AS count FROM {from}"));
        let count: Count = query.get_result(&mut self.conn).await?;
        Ok(count.count)
    }

    /// Asserts that every delivery was acknowledged and recorded.
    pub(crate) async fn all_succeeded(&mut self) -> Result<()> {
        let namespace = self.namespace.to_uuid();
        let others =
            format!("deliveries WHERE namespace_id = '{namespace}' AND state <> 'SUCCEEDED'");
        for _ in 0..50 {
            if self.count(&others).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        ensure!(
            self.count(&others).await? == 0,
            "every delivery has succeeded"
        );
        Ok(())
    }

    /// Makes the database do the maintenance now that it would do later after so many writes.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        for sql in ["VACUUM ANALYZE", "CHECKPOINT"] {
            sql_query(sql).execute(&mut self.conn).await?;
        }
        Ok(())
    }

    /// Deletes everything before the next part.
    pub(crate) async fn forget(&mut self) -> Result<()> {
        for sql in [
            "UPDATE deliveries SET state = 'CANCELLED', next_attempt_time = NULL, leased_by = NULL \
             WHERE state IN ('PENDING', 'RETRYING', 'IN_FLIGHT')",
            "UPDATE connection_lanes SET next_due_time = NULL",
        ] {
            sql_query(sql).execute(&mut self.conn).await?;
        }
        Ok(())
    }
}
