//! `earshot mcp` with the key of an account: every tool, with names of both accounts.

use std::{
    io::{Seek, Write},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::estate::Estate;
use crate::harness::programs;

const PATIENCE: Duration = Duration::from_secs(60);

/// A session of `earshot mcp`: the calls, and the answers.
pub(super) struct Session {
    pub(super) sent: String,
    pub(super) answers: Vec<Value>,
}

/// Calls each tool for the resources of both accounts, the own ones first.
pub(super) fn session(api_url: &str, key: &str, own: &Estate, other: &Estate) -> Session {
    let tools = ask(api_url, key, &[json!({"method": "tools/list"})]);
    let tools = &tools.answers[0]["result"]["tools"];
    let tools = tools.as_array().unwrap();
    assert!(tools.len() > 5, "{tools:?}");
    let mut calls = Vec::new();
    for estate in [own, other] {
        for tool in tools {
            let names = tool["inputSchema"]["required"].as_array().unwrap();
            let arguments = names.iter().map(|name| {
                let name = name.as_str().unwrap();
                (name.to_owned(), argument(name, estate))
            });
            let arguments: Value = arguments.collect::<serde_json::Map<_, _>>().into();
            let parameters = json!({"name": tool["name"], "arguments": arguments});
            calls.push(json!({"method": "tools/call", "params": parameters}));
        }
    }
    let session = ask(api_url, key, &calls);
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

fn ask(api_url: &str, key: &str, calls: &[Value]) -> Session {
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let mut sent = String::new();
    let first = json!({"method": "initialize", "params": hello});
    for (id, call) in std::iter::once(&first).chain(calls).enumerate() {
        let mut message = call.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = json!(id);
        sent.push_str(&format!("{message}\n"));
    }
    let mut input = tempfile::tempfile().unwrap();
    input.write_all(sent.as_bytes()).unwrap();
    input.rewind().unwrap();
    let mut command = programs::command("earshot");
    command.args(["mcp", "--allow-writes", "--url", api_url]);
    command.env("EARSHOT_API_KEY", key);
    command.stdin(input);
    let ended = block_in_place(|| programs::finish(&mut command, PATIENCE));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let answers = ended.stdout.lines().skip(1);
    let answers: Vec<Value> = answers
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), calls.len(), "{ended:?}");
    Session { sent, answers }
}
