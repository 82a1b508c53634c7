//! A million Scans: one Namespace, a hundred Managers, five weeks.

use anyhow::{Result, ensure};
use diesel::{QueryableByName, sql_query, sql_types::Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use domain::{
    Id, ManagerName, NamespaceName, Timestamp,
    key::{ApiKey, Role},
    namespace::CreateNamespace,
};
use store::{AsyncPgConnection, keys, migrations, namespaces, quotas};
use uuid::Uuid;

const MANAGERS: usize = 100;

/// Body of a create request.
pub(crate) const MANAGER: &str = r#"{"nickname":"Backup tools","type":"FEED_MANAGER","source":{"type":"FORUM"},"input":{"type":"STRUCTURED","urls":["https://www.example.com/"],"focus":{"type":"SALES"}}}"#;

pub(crate) struct Seeded {
    pub(crate) key: String,
    pub(crate) namespace: NamespaceName,
    account: Id,
    pub(crate) managers: Vec<ManagerName>,
    /// A Manager with enough Scans for a thousand pages.
    pub(crate) deepest: ManagerName,
}

pub(crate) async fn run(url: &str, scans: u32) -> Result<Seeded> {
    migrations::migrate(url).await?;
    let mut conn = store::establish(url).await?;
    let now = Timestamp::now();
    let account = keys::ensure_account(&mut conn, "bench", now).await?;
    let unbounded = quotas::Change {
        managers: Some(Some(u32::MAX)),
        ..quotas::Change::default()
    };
    quotas::set(&mut conn, "bench", &unbounded).await?;
    let key = ApiKey::generate();
    let new = keys::NewKey::new(account, &key, Role::Owner);
    keys::insert(&mut conn, new, now).await?;
    let draft = CreateNamespace {
        nickname: "bench".to_owned(),
        mutes: Vec::new(),
    };
    let namespace = namespaces::insert(&mut conn, account, &draft, &crate::QUOTAS)
        .await?
        .name;

    let uuid = namespace.namespace.to_uuid();
    let statements = [
        "SELECT ensure_partitions(parent, now() - interval '36 days', 10) \
         FROM unnest(ARRAY['posts', 'scans']) AS parent".to_owned(),
        // The same function as in crates/domain/src/id.rs.
        "CREATE FUNCTION pg_temp.id_at(t timestamptz, salt text) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ \
             SELECT (lpad(to_hex(micros / 1000), 12, '0') || lpad(to_hex(micros % 1000 * 4), 3, '0') \
                 || substr(md5(salt), 1, 17))::uuid \
             FROM (SELECT (extract(epoch FROM t) * 1000000)::bigint AS micros) AS at $$".to_owned(),
        format!(
            "INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time) \
             SELECT '{uuid}', lpad(n::text, 32, '0')::uuid, 'watch', true, 'AUTOMATIC', 'FORUM', 'APPLIED', '{{}}', now(), now(), now() \
             FROM generate_series(0, {MANAGERS} - 1) AS n"
        ),
        format!(
            "CREATE TEMPORARY TABLE made AS SELECT n, now() - n * (interval '35 days' / {scans}) AS t \
             FROM generate_series(1, {scans}) AS n"
        ),
        "INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, text, url, \
             subforum_id, subforum_name, subforum_url, user_id, user_name, user_url) \
         SELECT pg_temp.id_at(t, 'p' || n), t, md5(n::text)::uuid, 'forum:a', 'FORUM_LINK', t - interval '5 seconds', \
             'forum:' || n, 'What do you use for backups of number ' || n || '?', repeat('We have tried a few tools. ', 12), \
             'https://forum.example/posts/' || n, 's1', 'Selfhosted', 'https://forum.example/s/1', \
             'u' || n % 1000, 'user ' || n % 1000, 'https://forum.example/u/' || n % 1000 FROM made".to_owned(),
        format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, \
                 value, matched, fanned_out) \
             SELECT '{uuid}', lpad((n % {MANAGERS})::text, 32, '0')::uuid, pg_temp.id_at(t, 's' || n), t, t, pg_temp.id_at(t, 'p' || n), t, \
                 true, '{{\"score\": 0.8, \"terms\": [\"backup\", \"tools\"], \"focus\": \"SALES\"}}', true FROM made"
        ),
        // Neither must happen during the measurement.
        "VACUUM ANALYZE".to_owned(),
        "CHECKPOINT".to_owned(),
    ];
    for statement in statements {
        run_one(&mut conn, &statement).await?;
    }
    let managers = managers(&mut conn, namespace.namespace).await?;
    Ok(Seeded {
        key: key.expose(),
        namespace,
        account,
        deepest: managers[0],
        managers,
    })
}

impl Seeded {
    /// Returns the statement of a list for pgbench, for any of the Managers.
    pub(crate) fn bind(&self, statement: &str) -> Result<String> {
        ensure!(
            statement.contains("$3") && !statement.contains("$4"),
            "not the statement of a first page: {statement}"
        );
        let namespace = self.namespace.namespace.to_uuid();
        let account = self.account.to_uuid();
        // pgbench finds variables in comments too.
        let text = statement.split(" /*").next().unwrap_or_default();
        let bound = text
            .replace("$1", &format!("'{namespace}'::uuid"))
            // A cheap expression, because it is evaluated for every comparison.
            .replace("$2", "lpad((:manager)::text, 32, '0')::uuid")
            .replace("$3", &format!("'{account}'::uuid"));
        let last = self.managers.len() - 1;
        Ok(format!("\\set manager random(0, {last})\n{bound};\n"))
    }

    /// Returns the transaction that creates a Manager, for pgbench.
    pub(crate) fn create(&self) -> String {
        let namespace = self.namespace.namespace.to_uuid();
        format!(
            "\\set at random(1, 9000000000000000)\n\
             BEGIN;\n\
             SELECT account_id FROM namespaces WHERE id = '{namespace}';\n\
             INSERT INTO managers (namespace_id, id, nickname, enable, mode, source, state, input, submit_time, create_time, update_time) \
                 VALUES ('{namespace}', md5('new' || :at)::uuid, 'Backup tools', true, 'AUTOMATIC', 'FORUM', 'PENDING_APPLY', \
                     '{{\"type\": \"STRUCTURED\", \"urls\": [\"https://www.example.com/\"], \"focus\": {{\"type\": \"SALES\"}}}}', \
                     now(), now(), now()) RETURNING *;\n\
             INSERT INTO scan_clocks VALUES ('{namespace}', md5('new' || :at)::uuid, 'epoch');\n\
             COMMIT;\n"
        )
    }
}

async fn run_one(conn: &mut AsyncPgConnection, sql: &str) -> Result<()> {
    sql_query(sql).execute(conn).await?;
    Ok(())
}

async fn managers(conn: &mut AsyncPgConnection, namespace: Id) -> Result<Vec<ManagerName>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let rows: Vec<Row> = sql_query("SELECT id FROM managers ORDER BY id")
        .load(conn)
        .await?;
    let name = |row: Row| ManagerName {
        namespace,
        manager: Id::from_uuid(row.id),
    };
    Ok(rows.into_iter().map(name).collect())
}
