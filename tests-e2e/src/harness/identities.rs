//! The role at PostgreSQL and the user at RabbitMQ of each service, as in `docker-compose.yml`.

use std::{collections::BTreeMap, path::Path};

use private_servers::{Postgres, RabbitMq};
use serde_json::{Value, json};

use super::stack::Part;

const PASSWORD: &str = "d41a8c55";
const VHOST: &str = "earshot";
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/rabbitmq");

/// Settings of a service, as environment variables.
pub(crate) type Variables = [(&'static str, String); 2];

/// Makes roles and users, with the definitions that deployments import, before any service is there.
pub(crate) fn make(
    postgres: &Postgres,
    rabbitmq: &RabbitMq,
    home: &Path,
) -> BTreeMap<Part, Variables> {
    let roles: Vec<String> = Part::SERVICES.into_iter().map(role).collect();
    for role in &roles {
        postgres
            .query(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'"))
            .unwrap();
    }
    let definitions = home.join("definitions.json");
    std::fs::write(&definitions, definitions_of_all().to_string()).unwrap();
    rabbitmq
        .control(&["import_definitions", definitions.to_str().unwrap()])
        .unwrap();
    Part::SERVICES
        .into_iter()
        .map(|part| (part, variables(part, postgres, rabbitmq)))
        .collect()
}

fn variables(part: Part, postgres: &Postgres, rabbitmq: &RabbitMq) -> Variables {
    let with = |url: &str, user: &str, path: Option<&str>| {
        let mut url: url::Url = url.parse().unwrap();
        url.set_username(user).unwrap();
        url.set_password(Some(PASSWORD)).unwrap();
        if let Some(path) = path {
            url.set_path(path);
        }
        url.to_string()
    };
    let database = with(&postgres.url(), &role(part), None);
    let broker = with(&rabbitmq.amqp_url(), &user(part), Some(VHOST));
    [
        ("EARSHOT_DATABASE__URL", database),
        ("EARSHOT_BUS__URL", broker),
    ]
}

fn role(part: Part) -> String {
    format!("earshot_{}", part.program().replace('-', "_"))
}

fn user(part: Part) -> String {
    format!("earshot-{}", part.program())
}

fn definitions_of_all() -> Value {
    let read = |file: &str| -> Value {
        serde_json::from_slice(&std::fs::read(format!("{DEPLOY}/{file}")).unwrap()).unwrap()
    };
    let mut all = read("definitions.json");
    let mut permissions = read("permissions.json")["permissions"].take();
    let mut users: Vec<Value> = Part::SERVICES
        .into_iter()
        .map(|part| json!({"name": user(part), "password": PASSWORD, "tags": ""}))
        .collect();
    // The tests' own commands use the user that every new node has.
    users.push(json!({"name": "guest", "password": "guest", "tags": "administrator"}));
    permissions
        .as_array_mut()
        .unwrap()
        .retain(|permission| users.iter().any(|user| user["name"] == permission["user"]));
    for permission in ["/", VHOST] {
        let guest = json!({"user": "guest", "vhost": permission, "configure": ".*", "write": ".*", "read": ".*"});
        permissions.as_array_mut().unwrap().push(guest);
    }
    all["users"] = users.into();
    all["permissions"] = permissions;
    all
}
