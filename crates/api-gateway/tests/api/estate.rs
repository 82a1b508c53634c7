//! All resources of one account that paths of the API can name, and requests for them generated from
//! `openapi.yaml`.

use domain::Id;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::{TestDatabase, post};

use crate::{
    app::{TestApp, last_id},
    client::{Answer, Client},
    contract,
    scans::record,
};

/// Full resource names.
#[derive(Clone)]
pub(crate) struct Estate {
    pub(crate) namespace: String,
    pub(crate) manager: String,
    pub(crate) connection: String,
    pub(crate) scan: String,
    delivery: String,
    replay: String,
}

impl Estate {
    pub(crate) async fn make(app: &TestApp, owner: &Client) -> Self {
        let namespace = owner.namespace().await;
        Self::make_in(app, owner, namespace).await
    }

    /// Creates resources in addition to those of the Namespace.
    pub(crate) async fn make_in(app: &TestApp, owner: &Client, namespace: String) -> Self {
        let connection = owner.connection(&namespace).await;
        let manager = owner.manager(&namespace).await;
        record(app, &manager, &[post("1", "first")]).await;
        let scans = owner.get(&format!("/v1/{manager}/scans")).await;
        let scan = scans.body["scans"][0]["name"].as_str().unwrap().to_owned();
        let delivery = Id::generate();
        let uuid = |name: &str| last_id(name).to_uuid();
        let made = app
            .database
            .run(&format!(
                "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, \
                     scan_id, state, attempt_count) \
                 VALUES ('{}', '{}', '{}', '{}', now(), '{}', '{}', 'EXHAUSTED', 1)",
                uuid(&namespace),
                uuid(&connection),
                delivery.to_uuid(),
                delivery.time(),
                uuid(&manager),
                uuid(&scan),
            ))
            .await;
        assert_eq!(made, 1);
        let window = json!({"startTime": domain::Timestamp::now().to_string()});
        let replay = owner
            .post(&format!("/v1/{connection}:replay"), &window)
            .await;
        Self {
            delivery: format!("{connection}/deliveries/{delivery}"),
            replay: replay.body["name"].as_str().unwrap().to_owned(),
            namespace,
            manager,
            connection,
            scan,
        }
    }

    /// Returns the last segment of the resource that the path parameter `{parameter}` names.
    ///
    /// # Panics
    /// If the parameter is unknown: a test that adds one must create the resource above.
    fn id(&self, parameter: &str) -> String {
        let name = match parameter {
            "namespaceId" => &self.namespace,
            "managerId" => &self.manager,
            "connectionId" => &self.connection,
            "scanId" => &self.scan,
            "deliveryId" => &self.delivery,
            "replayId" => &self.replay,
            other => panic!("no estate has a `{other}`: make one"),
        };
        last_id(name).to_string()
    }

    /// Builds a path of existing resources from this template.
    pub(crate) fn existing(&self, template: &str) -> String {
        self.path(template, usize::MAX, None)
    }

    /// Builds a path from this template. The first `depth` parameters come from `self`, and the rest from `other`
    /// or, without it, name nothing.
    pub(crate) fn path(&self, template: &str, depth: usize, other: Option<&Self>) -> String {
        let mut path = String::new();
        let mut rest = template;
        let mut met = 0;
        while let Some((before, parameter)) = rest.split_once('{') {
            let (parameter, after) = parameter.split_once('}').unwrap();
            let own = self.id(parameter);
            let id = match other {
                _ if met < depth => own,
                Some(other) => other.id(parameter),
                None => Id::generate().to_string(),
            };
            path.push_str(before);
            path.push_str(&id);
            (rest, met) = (after, met + 1);
        }
        path + rest
    }
}

/// An operation of `openapi.yaml`.
pub(crate) struct Operation {
    pub(crate) method: String,
    pub(crate) template: String,
    described: &'static Value,
}

/// Operations that need a key.
pub(crate) fn operations() -> Vec<Operation> {
    let all: Vec<Operation> = contract::operations()
        .into_iter()
        .filter(|(_, _, described)| described["security"] != json!([]))
        .map(|(method, template, described)| Operation {
            method,
            template,
            described,
        })
        .collect();
    assert!(all.len() > 35, "{} operations", all.len());
    all
}

impl Operation {
    /// Number of resources in its path.
    pub(crate) fn depth(&self) -> usize {
        self.template.matches('{').count()
    }

    /// Builds a valid request that changes something if the operation can.
    pub(crate) async fn call(&self, client: &Client, path: &str, test_mode: bool) -> Answer {
        let body = contract::examples(self.described).into_iter().next();
        let parameters = contract::parameters(&self.template, self.described);
        let takes_force = parameters.iter().any(|one| one["name"] == "force");
        let required: Vec<(&str, &str)> = parameters
            .into_iter()
            .filter(|one| one["in"] == "query" && one["required"] == true)
            .map(|one| {
                let example = one.get("example").unwrap_or(&one["schema"]["example"]);
                (one["name"].as_str().unwrap(), example.as_str().unwrap())
            })
            .collect();
        let method: Method = self.method.parse().unwrap();
        let shape = |mut request: reqwest::RequestBuilder| {
            request = request.query(&required);
            if takes_force {
                request = request.query(&[("force", "true")]);
            }
            if test_mode {
                request = request.header("x-test", "true");
            }
            match &body {
                Some(body) => request.json(body),
                None => request,
            }
        };
        client.send(method.clone(), path, shape).await
    }
}

/// All stored data except request costs, the last use of keys, replicas, and reads of secrets. It is equal before and
/// after a request without effect.
pub(crate) async fn stored(database: &TestDatabase) -> Vec<String> {
    let digest = "t.table_name || ' ' || md5(query_to_xml(format('SELECT to_jsonb(r) - ''last_use_time'' FROM %I AS r \
                      WHERE to_jsonb(r)->>''action'' IS DISTINCT FROM ''READ_SECRETS'' ORDER BY r::text', t.table_name), true, true, '')::text)";
    let tables = "information_schema.tables AS t WHERE table_schema = 'public' AND table_type = 'BASE TABLE' \
                      AND table_name NOT IN ('rate_ledgers', 'account_rate_ledgers', 'replicas') ORDER BY table_name";
    let digests = database.texts(digest, tables).await;
    assert!(digests.len() > 15, "{digests:?}");
    digests
}
