//! A whole session by lines, with an API that the test answers.

use std::sync::Arc;

use client::{Client, Retries};
use serde_json::{Value, json};
use tokio::{
    io::{
        AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    sync::Notify,
};

use super::MAX_LINE_BYTES;
use crate::{Server, serve::on_lines};

struct Host {
    input: WriteHalf<DuplexStream>,
    answers: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Host {
    /// `answer` is the API's, given after `release`.
    async fn start(answer: Value, release: Arc<Notify>) -> Self {
        let (host, revision) = Self::hello(answer, release, "2025-06-18").await;
        assert_eq!(revision, "2025-06-18");
        host
    }

    /// Returns the revision that the server answers, too.
    async fn hello(answer: Value, release: Arc<Notify>, revision: &str) -> (Self, Value) {
        let client = Client::new("http://localhost".parse().unwrap(), "k".into()).unwrap();
        let client = client.with_retries(Retries::NONE);
        let client = client.answered_by(Arc::new(move |_| {
            let (release, body) = (Arc::clone(&release), answer.to_string().into_bytes());
            Box::pin(async move {
                release.notified().await;
                http::Response::new(body)
            })
        }));
        let (ours, theirs) = duplex(64 * 1024);
        let (input, output) = split(theirs);
        tokio::spawn(on_lines(
            Server::with_writes(client, false),
            BufReader::new(input),
            output,
        ));
        let (answers, input) = split(ours);
        let answers = BufReader::new(answers).lines();
        let mut host = Self { input, answers };
        let hello = json!({
            "protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        host.ask(0, "initialize", &hello).await;
        let welcome = host.read().await;
        host.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            .await;
        (host, welcome["result"]["protocolVersion"].clone())
    }

    async fn write(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.unwrap();
    }

    async fn ask(&mut self, id: u64, method: &str, params: &Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.write(&message.to_string()).await;
    }

    async fn read(&mut self) -> Value {
        let line = self.answers.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn call() -> Value {
    json!({"name": "list_namespaces", "arguments": {}})
}

#[tokio::test]
async fn calls_run_side_by_side_and_can_be_cancelled() {
    let release = Arc::new(Notify::new());
    let mut host = Host::start(json!({"namespaces": []}), Arc::clone(&release)).await;
    host.ask(1, "tools/call", &call()).await;
    host.ask(2, "tools/call", &call()).await;
    host.ask(3, "ping", &json!({})).await;
    assert_eq!(host.read().await["id"], 3);
    let cancel = json!({"requestId": 1, "reason": "too slow"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    host.write(&cancel.to_string()).await;
    host.ask(4, "tools/list", &json!({})).await;
    // The cancelled call may be answered or not.
    let mut answers = Vec::new();
    while answers.last() != Some(&json!(4)) {
        answers.push(host.read().await["id"].clone());
    }
    assert!(!answers.contains(&json!(2)), "{answers:?}");
    release.notify_waiters();
    let mut last = host.read().await;
    if last["id"] == 1 {
        last = host.read().await;
    }
    assert_eq!(
        (&last["id"], &last["result"]["isError"]),
        (&json!(2), &json!(false))
    );
}

/// Its clients may send several messages in one array.
#[tokio::test]
async fn revision_with_batches_is_not_agreed_to() {
    let hello = Host::hello(json!({}), Arc::default(), "2025-03-26");
    let (_host, revision) = hello.await;
    assert_eq!(revision, "2025-11-25");
}

#[tokio::test]
async fn each_broken_line_gets_an_answer_with_its_id() {
    let release = Arc::new(Notify::new());
    release.notify_one();
    let answer = json!({"namespaces": [{"nickname": "ours"}]});
    let mut host = Host::start(answer, release).await;
    let long = "a".repeat(MAX_LINE_BYTES);
    for (line, id, code) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"\x"}"#,
            json!(1),
            -32_700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":"b","method":"ping""#,
            json!("b"),
            -32_700,
        ),
        ("{not json", Value::Null, -32_700),
        ("\u{feff}{}", Value::Null, -32_600),
        (r#"{"id":5}"#, json!(5), -32_600),
        (
            r#"[{"jsonrpc":"2.0","id":6,"method":"ping"}]"#,
            Value::Null,
            -32_600,
        ),
        (
            &format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{long}"}}"#),
            json!(7),
            -32_600,
        ),
        (&long.repeat(3), Value::Null, -32_600),
    ] {
        // A blank line, a notification and an answer get none.
        for ignored in [" \r", r#"{"method":"a"}"#, r#"{"id":null,"error":{}}"#] {
            host.write(ignored).await;
        }
        host.write(line).await;
        let answer = host.read().await;
        let line = &line[..line.len().min(80)];
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&id, &json!(code)),
            "{line}: {answer}"
        );
    }
    // Half of an emoji.
    let line = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"list_namespaces","arguments":{"filter":"nickname = \"\ud83d\""}}}"#;
    host.write(line).await;
    let answer = host.read().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(9), &json!(false)),
        "{answer}"
    );
}
