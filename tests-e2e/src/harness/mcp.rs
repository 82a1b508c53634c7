//! `earshot mcp` with a key of the service under test.

use std::{
    io::{Seek, Write},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::programs;

const PATIENCE: Duration = Duration::from_secs(120);

/// A session of `earshot mcp`: the calls, and the answers.
pub(crate) struct Session {
    pub(crate) sent: String,
    pub(crate) answers: Vec<Value>,
}

/// Calls `earshot mcp` with a key, and returns an answer to each call.
pub(crate) fn session(api_url: &str, key: &str, calls: &[Value]) -> Session {
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
    let answers = ended.stdout.lines();
    let mut answers: Vec<Value> = answers
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), calls.len() + 1, "{ended:?}");
    // They come in any order; the first is to `initialize`.
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers.remove(0);
    Session { sent, answers }
}
