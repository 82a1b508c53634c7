//! `earshot mcp` with the key of an account: every tool, with names of both accounts.

use serde_json::{Value, json};

use super::estate::Estate;
use crate::harness::mcp::{self, Session};

/// Calls each tool for the resources of both accounts, the own ones first.
pub(super) fn session(api_url: &str, key: &str, own: &Estate, other: &Estate) -> Session {
    let tools = mcp::session(api_url, key, &[json!({"method": "tools/list"})]);
    let tools = &tools.answers[0]["result"]["tools"];
    let tools = tools.as_array().unwrap();
    assert!(tools.len() > 5, "{tools:?}");
    let mut calls = Vec::new();
    for estate in [own, other] {
        for tool in tools {
            // Absent for a tool that needs no argument.
            let names = tool["inputSchema"]["required"].as_array();
            let arguments = names.into_iter().flatten().map(|name| {
                let name = name.as_str().unwrap();
                (name.to_owned(), argument(name, estate))
            });
            let arguments: Value = arguments.collect::<serde_json::Map<_, _>>().into();
            let parameters = json!({"name": tool["name"], "arguments": arguments});
            calls.push(json!({"method": "tools/call", "params": parameters}));
        }
    }
    let session = mcp::session(api_url, key, &calls);
    for (index, answer) in session.answers.iter().enumerate() {
        let is_refused = answer["result"]["isError"] == true;
        let is_foreign = index >= tools.len() && calls[index]["params"]["arguments"] != json!({});
        assert_eq!(is_refused, is_foreign, "{}: {answer}", calls[index]);
    }
    session
}

/// Returns a value for an argument of a tool.
fn argument(name: &str, estate: &Estate) -> Value {
    let collection = match name {
        "namespace" => "namespaces",
        "manager" | "parent" | "name" => "managers",
        "scan" => "scans",
        "value" | "enable" => return json!(true),
        other => panic!("no value for the argument `{other}`: add one"),
    };
    let all = estate.all(collection);
    let first = all.first();
    json!(first.unwrap_or_else(|| panic!("{:?} has no {collection}", estate.side)))
}
