//! `earshot dev --demo`: Scans arrive without a network and without credentials.

use std::time::Duration;

use super::support::name;
use crate::harness::{api::Api, dev_command, eventually, process::Process, word};

const START: Duration = Duration::from_secs(120);
const WITHIN: Duration = Duration::from_secs(120);
const SCANS: usize = 3;

/// Three Scans reach the demo receiver.
pub(crate) async fn run() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("earshot.toml");
    std::fs::write(&config, "").unwrap();
    let mut command = dev_command(&config, &directory.path().join("data"));
    let mut process = Process::spawn("earshot", command.arg("--demo"), directory.path());
    let line = process.line("earshot ready ", START).await;
    let mut reported = 0;
    eventually("the demo receiver gets Scans", WITHIN, async || {
        let output = process.output();
        let received = output.matches("demo receiver: got a Scan").count();
        if received != reported {
            reported = received;
            eprintln!("{received} Scans reached the demo receiver");
        }
        (received >= SCANS).then_some(())
    })
    .await;

    // The ready line contains all that is needed to read them with the API.
    let api = Api::new(word(&line, "api="), word(&line, "key="));
    let only = async |path: &str, key: &str| {
        let answer = api.get(path).await.json();
        assert_eq!(answer[key].as_array().unwrap().len(), 1, "{answer}");
        answer[key][0].clone()
    };
    let namespace = only("/v1/namespaces", "namespaces").await;
    let managers = format!("/v1/{}/managers", name(&namespace));
    let manager = only(&managers, "managers").await;
    eventually("the scans are listed", WITHIN, async || {
        (api.scans(&manager, 5).await.len() >= SCANS).then_some(())
    })
    .await;
    assert!(process.terminate(START).success());
}
