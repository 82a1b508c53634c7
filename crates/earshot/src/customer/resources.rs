//! Columns of tables and CSV files for each kind of resource.

use client::Client;
use serde_json::Value;

use super::Failure;

/// Columns are paths into a resource; `a|b` shows the first that exists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) table: &'static [&'static str],
    pub(crate) csv: &'static [&'static str],
}

pub(crate) const NAMESPACES: Columns = Columns {
    table: &["nickname", "createTime", "name"],
    csv: &["name", "nickname", "createTime", "updateTime"],
};

pub(crate) const MANAGERS: Columns = Columns {
    table: &[
        "nickname",
        "state",
        "enable",
        "mode",
        "health.state",
        "name",
    ],
    csv: &[
        "name",
        "nickname",
        "state",
        "enable",
        "mode",
        "source.type",
        "createTime",
        "applyTime",
        "applyError.code",
        "health.state",
        "instructions.brief",
    ],
};

pub(crate) const CONNECTIONS: Columns = Columns {
    table: &["nickname", "state", "url", "health.pending", "name"],
    csv: &[
        "name",
        "nickname",
        "state",
        "stateReason",
        "url",
        "method",
        "format",
        "maxPerSecond",
        "digest.period",
        "digest.timeZone",
        "createTime",
        "health.successRate",
        "health.pending",
        "health.lastSuccessTime",
    ],
};

pub(crate) const SCANS: Columns = Columns {
    table: &[
        "createTime",
        "value",
        "match.score",
        "post.title|post.text",
        "post.url",
        "name",
    ],
    csv: &[
        "name",
        "createTime",
        "value",
        "labels",
        "match.score",
        "match.terms",
        "post.type",
        "post.time",
        "post.id",
        "post.title",
        "post.text",
        "post.url",
        "post.subforum.name",
        "post.user.name",
    ],
};

pub(crate) const DELIVERIES: Columns = Columns {
    table: &[
        "createTime",
        "state",
        "attemptCount",
        "lastStatusCode",
        "lastError",
        "name",
    ],
    csv: &[
        "name",
        "scan",
        "event.type",
        "createTime",
        "state",
        "attemptCount",
        "lastAttemptTime",
        "nextAttemptTime",
        "lastStatusCode",
        "lastError",
    ],
};

pub(crate) const AUDIT_EVENTS: Columns = Columns {
    table: &[
        "createTime",
        "action",
        "resource",
        "fields",
        "actor.key|actor.type",
        "clientAddress",
    ],
    csv: &[
        "name",
        "createTime",
        "action",
        "resource",
        "fields",
        "actor.type",
        "actor.key",
        "clientAddress",
        "requestId",
    ],
};

pub(crate) const RESULTS: Columns = Columns {
    table: &[
        "value",
        "reason",
        "match.score",
        "match.terms",
        "post.title|post.text",
        "post.url",
    ],
    csv: &[
        "value",
        "reason",
        "match.score",
        "match.terms",
        "post.id",
        "post.title",
        "post.url",
    ],
};

pub(crate) const FEEDS: Columns = Columns {
    table: &["feed", "reachTime"],
    csv: &["feed", "reachTime"],
};

/// Returns the value as text; empty if it is missing.
pub(crate) fn cell(item: &Value, column: &str) -> String {
    let found = column.split('|').find_map(|path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        item.pointer(&pointer).filter(|value| !value.is_null())
    });
    found.map(text).unwrap_or_default()
}

pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float:.3}"),
            _ => number.to_string(),
        },
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Returns the Namespace: the given one, or the only one that exists.
pub(crate) async fn namespace(client: &Client, given: Option<&str>) -> Result<String, Failure> {
    if let Some(given) = given {
        return Ok(below("namespaces", given));
    }
    let found: Vec<Value> = client
        .pages("namespaces", client::Query::default())
        .all()
        .await?;
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    match &found[..] {
        [one] => Ok(name(one)),
        [] => Err(Failure::usage(
            "there is no Namespace yet: earshot namespaces create --set nickname=NAME",
        )),
        many => {
            let lines = many.iter().take(20).map(|one| {
                let nickname = one["nickname"].as_str().unwrap_or_default();
                format!("\n  {}  {}", name(one), super::one_line(nickname))
            });
            let lines: String = lines.collect();
            Err(Failure::usage(format!(
                "several Namespaces: give --namespace NAME, or set EARSHOT_NAMESPACE:{lines}"
            )))
        }
    }
}

/// Returns the name itself, or the name for an id in a collection.
fn below(collection: &str, given: &str) -> String {
    if given.contains('/') {
        given.to_owned()
    } else {
        format!("{collection}/{given}")
    }
}

/// Returns the name of a resource that is given by its name, or by its id in a collection of the selected Namespace.
pub(crate) async fn named(
    client: &Client,
    namespace_given: Option<&str>,
    collection: &str,
    given: &str,
) -> Result<String, Failure> {
    if given.contains('/') {
        return Ok(given.to_owned());
    }
    let namespace = namespace(client, namespace_given).await?;
    Ok(format!("{namespace}/{collection}/{given}"))
}
