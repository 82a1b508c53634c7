//! Runs the sample receivers of `docs/receivers` whose interpreter is installed: they accept genuine requests, refuse
//! forged ones, and process nothing twice.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use http::Method;
use serde_json::json;

use super::support::PATIENCE;
use crate::harness::{Stack, api, free_address, process::Process};

const SIGNING_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECRET: &str = "lantern";

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/receivers")
}

/// The program, its arguments before the file, and the file.
const ALL: [(&str, &[&str], &str); 4] = [
    ("python3", &[], "receiver.py"),
    ("node", &[], "receiver.mjs"),
    ("ruby", &[], "receiver.rb"),
    ("go", &["run"], "receiver.go"),
];

pub(crate) async fn run(stack: &Stack) {
    let mut seen = 0;
    for (program, arguments, file) in ALL {
        let probe = if program == "go" {
            "version"
        } else {
            "--version"
        };
        let there = Command::new(program)
            .arg(probe)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !there.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: docs/receivers/{file} was not run: {program} is missing");
            continue;
        }
        let mut command = Command::new(program);
        command.args(arguments).arg(samples().join(file));
        sample(stack, &mut command, file).await;
        seen += 1;
    }
    assert!(seen > 0, "none of the samples could be run");
}

async fn sample(stack: &Stack, command: &mut Command, file: &str) {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let port = address.rsplit(':').next().unwrap();
    command
        .env("PORT", port)
        .env("SECRET", SECRET)
        .env("WEBHOOK_SECRET", SIGNING_SECRET);
    let mut process = Process::spawn(file, command, folder.path());
    process.line("ready ", PATIENCE).await;

    // A delivery by the dispatcher: header and signature.
    let namespace = stack.api.create_namespace(file).await;
    let connection = |secret: &str, signing: &str| {
        json!({
            "nickname": file, "type": "HTTP_CONNECTION", "url": format!("http://{address}/"),
            "headers": {"x-secret": secret}, "signingSecrets": [signing],
        })
    };
    let wrong_signing = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    for (body, taken) in [
        (connection(SECRET, SIGNING_SECRET), true),
        (connection("wrong", SIGNING_SECRET), false),
        (connection(SECRET, wrong_signing), false),
    ] {
        let made = stack
            .api
            .post(&format!("/v1/{namespace}/connections"), &body)
            .await;
        let made = made.json();
        let path = format!("/v1/{}:test", made["name"].as_str().unwrap());
        let outcome = stack.api.post(&path, &json!({})).await.json();
        assert_eq!(outcome["ok"], taken, "{file}: {outcome}");
        if !taken {
            assert_eq!(outcome["statusCode"], 401, "{file}: {outcome}");
        }
    }
    process.line("scan namespaces/", PATIENCE).await;
    assert_eq!(
        process.output().matches("scan namespaces/").count(),
        1,
        "{file}"
    );
    end(process);

    // A duplicate is processed once; a forged request is refused.
    command.env_remove("WEBHOOK_SECRET");
    let name = "again";
    let mut process = Process::spawn(name, command, folder.path());
    process.line("ready ", PATIENCE).await;
    let client = api::client();
    let post = async |secret: &str, body: &str| {
        let url = format!("http://{address}/");
        let headers = [("x-secret", secret), ("content-type", "application/json")];
        let answer = api::send(&client, Method::POST, &url, &headers, Some(body.to_owned())).await;
        answer.status
    };
    let event = |name: &str| {
        let post =
            json!({"title": "a \u{1b}[2J \"b\"", "text": "t", "url": "https://example.com/"});
        json!({"type": "SCAN", "name": name, "post": post}).to_string()
    };
    for _ in 0..3 {
        assert_eq!(post(SECRET, &event("one")).await, 204, "{file}");
    }
    assert_eq!(post("", &event("none")).await, 401, "{file}");
    assert_eq!(post(SECRET, "{not json").await, 400, "{file}");
    assert_eq!(post(SECRET, "[]").await, 400, "{file}");
    assert_eq!(post(SECRET, &event("two")).await, 204, "{file}");
    process.line("scan two ", PATIENCE).await;
    let output = process.output();
    assert_eq!(output.matches("scan one ").count(), 1, "{file}: {output}");
    assert!(
        !output.contains("scan none") && !output.contains('\u{1b}'),
        "{file}: {output}"
    );
    end(process);
    println!("docs/receivers/{file} accepts genuine requests, once");
}

/// Ends the program and its children: `go run` starts a compiled program.
fn end(mut process: Process) {
    process.ask_all_to_end();
    process.wait_for_end(PATIENCE);
}
