//! The tools: their arguments, and their requests to the API.

use client::{Change, Client, Query, Request};
use domain::Timestamp;
use serde_json::{Value, json};

use super::quote::{is_resource_name, quoted};
use crate::customer::Failure;

const MOST: u64 = 50;
const USUALLY: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    ListNamespaces,
    ListManagers,
    ListScans,
    ExplainScan,
    PreviewManager,
    GetStats,
    JudgeScan,
    ApplyManager,
    EnableManager,
}

const ALL: [Tool; 9] = [
    Tool::ListNamespaces,
    Tool::ListManagers,
    Tool::ListScans,
    Tool::ExplainScan,
    Tool::PreviewManager,
    Tool::GetStats,
    Tool::JudgeScan,
    Tool::ApplyManager,
    Tool::EnableManager,
];

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Self::ListNamespaces => "list_namespaces",
            Self::ListManagers => "list_managers",
            Self::ListScans => "list_scans",
            Self::ExplainScan => "explain_scan",
            Self::PreviewManager => "preview_manager",
            Self::GetStats => "get_stats",
            Self::JudgeScan => "judge_scan",
            Self::ApplyManager => "apply_manager",
            Self::EnableManager => "enable_manager",
        }
    }

    fn writes(self) -> bool {
        match self {
            Self::ListNamespaces
            | Self::ListManagers
            | Self::ListScans
            | Self::ExplainScan
            | Self::PreviewManager
            | Self::GetStats => false,
            Self::JudgeScan | Self::ApplyManager | Self::EnableManager => true,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::ListNamespaces => "List the Namespaces that the key may see.",
            Self::ListManagers => {
                "List the Managers of a Namespace: what each looks for, and how it does."
            }
            Self::ListScans => {
                "List Scans, newest first: of one Manager, or of all of a Namespace. `filter` is the API's, such \
                 as: createTime > \"2026-11-21T00:00:00Z\" AND match.score > 0.7"
            }
            Self::ExplainScan => {
                "Tell why a post became a Scan: its score beside the Manager's threshold, the words that counted, \
                 and what the Manager looks for."
            }
            Self::PreviewManager => {
                "Tell what a Manager would make of its newest posts, or of a text; with the reason for each. \
                 Nothing is stored."
            }
            Self::GetStats => {
                "Posts, Scans and deliveries over time, of a Namespace, a Manager or a Connection, by its name."
            }
            Self::JudgeScan => {
                "Say whether a Scan was right; the next compile of its Manager learns from it."
            }
            Self::ApplyManager => "Have a Manager's pages read and its instructions made again.",
            Self::EnableManager => "Turn a Manager on or off.",
        }
    }

    fn properties(self) -> (Value, &'static [&'static str]) {
        let text = |words: &str| json!({"type": "string", "description": words});
        let name = |of: &str| text(&format!("The {of}'s `name`, such as namespaces/…"));
        match self {
            Self::ListNamespaces => (json!({}), &[]),
            Self::ListManagers => (json!({"namespace": name("Namespace")}), &["namespace"]),
            Self::ListScans => (
                json!({
                    "parent": name("Manager or Namespace"),
                    "filter": text("What to list; all without it."),
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
                }),
                &["parent"],
            ),
            Self::ExplainScan => (json!({"scan": name("Scan")}), &["scan"]),
            Self::PreviewManager => (
                json!({
                    "manager": name("Manager"),
                    "recent": {"type": "integer", "minimum": 1, "maximum": MOST},
                    "text": text("A post's text to try, in the place of recent posts."),
                    "title": text("The title to that text."),
                }),
                &["manager"],
            ),
            Self::GetStats => (
                json!({
                    "name": name("resource"),
                    "hours": {"type": "integer", "minimum": 1, "maximum": 720},
                }),
                &["name"],
            ),
            Self::JudgeScan => (
                json!({"scan": name("Scan"), "value": {"type": "boolean"}}),
                &["scan", "value"],
            ),
            Self::ApplyManager => (json!({"manager": name("Manager")}), &["manager"]),
            Self::EnableManager => (
                json!({"manager": name("Manager"), "enable": {"type": "boolean"}}),
                &["manager", "enable"],
            ),
        }
    }
}

pub(super) fn list(writes: bool) -> Vec<Value> {
    let offered = ALL.iter().filter(|tool| writes || !tool.writes());
    offered
        .map(|tool| {
            let (properties, required) = tool.properties();
            json!({
                "name": tool.name(),
                "description": tool.describe(),
                "inputSchema": {
                    "type": "object", "properties": properties, "required": required,
                    "additionalProperties": false,
                },
                "annotations": {"readOnlyHint": !tool.writes(), "openWorldHint": true},
            })
        })
        .collect()
}

pub(super) fn find(name: &str, writes: bool) -> Option<Tool> {
    let found = ALL.into_iter().find(|tool| tool.name() == name);
    found.filter(|tool| writes || !tool.writes())
}

/// Runs a tool and returns the text for the model.
pub(super) async fn run(client: &Client, tool: Tool, given: &Value) -> Result<String, Failure> {
    let name = |field: &str, kind: &str| name(given, field, kind);
    match tool {
        Tool::ListNamespaces => {
            let all = client.pages("namespaces", Query::default()).all().await?;
            Ok(shown(&all))
        }
        Tool::ListManagers => {
            let parent = name("namespace", "namespaces")?;
            let pages = client.pages(&format!("{parent}/managers"), Query::default());
            Ok(shown(&pages.all().await?))
        }
        Tool::ListScans => {
            let parent = name("parent", "")?;
            let scans = match parent.split('/').count() {
                2 => format!("{parent}/managers/-/scans"),
                _ => format!("{parent}/scans"),
            };
            let limit = given["limit"].as_u64().unwrap_or(USUALLY).clamp(1, MOST);
            let query = Query {
                filter: given["filter"].as_str().map(str::to_owned),
                page_size: u32::try_from(limit).ok(),
                ..Query::default()
            };
            Ok(shown(&client.list(&scans, &query).await?.items))
        }
        Tool::ExplainScan => explain(client, name("scan", "scans")?).await,
        Tool::PreviewManager => preview(client, name("manager", "managers")?, given).await,
        Tool::GetStats => stats(client, name("name", "")?, given).await,
        Tool::JudgeScan => {
            let value = given["value"].as_bool();
            let value = value.ok_or_else(|| Failure::usage("`value` must be true or false"))?;
            let body = json!({ "value": value });
            change(client, name("scan", "scans")?, &body).await
        }
        Tool::ApplyManager => {
            let manager = name("manager", "managers")?;
            let manager: Value = client.act(manager, "apply", &json!({})).await?;
            Ok(quoted(&manager))
        }
        Tool::EnableManager => {
            let enable = given["enable"].as_bool();
            let enable = enable.ok_or_else(|| Failure::usage("`enable` must be true or false"))?;
            let body = json!({ "enable": enable });
            change(client, name("manager", "managers")?, &body).await
        }
    }
}

/// Validates a name, because a model may pass any text, and it becomes a path. An empty `kind` accepts any kind.
fn name<'a>(given: &'a Value, field: &str, kind: &str) -> Result<&'a str, Failure> {
    let name = given[field].as_str().unwrap_or_default();
    let of_kind = kind.is_empty() || name.rsplit('/').nth(1) == Some(kind);
    if is_resource_name(name) && of_kind {
        Ok(name)
    } else {
        Err(Failure::usage(format!(
            "`{field}` must be a name of this form: namespaces/…"
        )))
    }
}

fn shown(items: &[Value]) -> String {
    if items.is_empty() {
        return "There are none.\n".to_owned();
    }
    items.iter().map(quoted).collect()
}

async fn change(client: &Client, name: &str, body: &Value) -> Result<String, Failure> {
    let change = Change { body, mask: None };
    let changed: Value = client.update(name, &change).await?;
    Ok(quoted(&changed))
}

async fn explain(client: &Client, name: &str) -> Result<String, Failure> {
    let scan: Value = client.get(name).await?;
    let manager = name.split("/scans/").next().unwrap_or_default();
    let manager: Value = client.get(manager).await?;
    let looks = json!({
        "manager": manager["nickname"], "threshold": manager["instructions"]["threshold"],
        "brief": manager["instructions"]["brief"], "require": manager["instructions"]["require"],
        "exclude": manager["instructions"]["exclude"],
    });
    Ok(format!(
        "What the Manager looks for:\n{}\nThe Scan:\n{}",
        quoted(&looks),
        quoted(&scan)
    ))
}

async fn preview(client: &Client, manager: &str, given: &Value) -> Result<String, Failure> {
    let body = match given["text"].as_str() {
        Some(text) => {
            let of = json!({"id": "you", "name": "you", "url": "https://example.com/"});
            let title = given["title"].as_str().unwrap_or(text);
            let title: String = title.chars().take(200).collect();
            json!({"posts": [{
                "type": "FORUM_LINK", "time": Timestamp::now().to_string(), "id": "try",
                "title": title, "text": text, "url": "https://example.com/", "subforum": of, "user": of,
            }]})
        }
        None => json!({"recent": given["recent"].as_u64().unwrap_or(USUALLY).clamp(1, MOST)}),
    };
    let answer: Value = client.act(manager, "preview", &body).await?;
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    Ok(shown(&results))
}

async fn stats(client: &Client, name: &str, given: &Value) -> Result<String, Failure> {
    let hours = given["hours"].as_u64().unwrap_or(24).clamp(1, 720);
    let start = Timestamp::now().minus(std::time::Duration::from_hours(hours));
    let interval = if hours > 72 { "1d" } else { "1h" };
    let query = [
        ("startTime", start.to_string()),
        ("interval", interval.to_owned()),
    ];
    let query = query.map(|(name, value)| (name.to_owned(), value));
    let request = Request::get(&format!("{name}/stats")).query(query);
    let stats: Value = client.call(request).await?;
    Ok(quoted(&stats))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{find, list, name};

    #[test]
    fn writing_is_offered_where_it_is_allowed() {
        assert_eq!((list(false).len(), list(true).len()), (6, 9));
        assert!(find("judge_scan", false).is_none() && find("judge_scan", true).is_some());
        assert!(find("delete_namespace", true).is_none());
    }

    #[test]
    fn only_names_become_paths() {
        let id = domain::Id::generate();
        let scan = format!("namespaces/{id}/managers/{id}/scans/{id}");
        let taken = |text: &str, kind: &str| name(&json!({"x": text}), "x", kind).is_ok();
        assert!(taken(&scan, "scans") && taken(&scan, ""));
        assert!(!taken(&scan, "managers"));
        for wrong in [
            "",
            "namespaces",
            "caller",
            "namespaces/../caller",
            "namespaces/-",
            "openapi.json/x",
        ] {
            assert!(!taken(wrong, ""), "{wrong}");
        }
    }
}
