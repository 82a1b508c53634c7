//! The cost of an idle `earshot dev`.

use std::time::Duration;

use crate::harness::{
    api::Api, config, dev_command, eventually, process::Process, simulator::Simulator, word,
};

const LIMIT_KB: u64 = 100 * 1000;
const REQUESTS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures the resident memory of the one process, without PostgreSQL, once the work of its start is done.
pub(crate) async fn memory() {
    let directory = tempfile::tempdir().unwrap();
    let simulator = Simulator::start(directory.path()).await;
    let settings = directory.path().join("earshot.toml");
    std::fs::write(&settings, config::common(simulator.url())).unwrap();
    let mut command = dev_command(&settings, &directory.path().join("data"));
    let mut process = Process::spawn("earshot", &mut command, directory.path());
    let line = process.line("earshot ready ", PATIENCE).await;
    let api = Api::new(word(&line, "api="), word(&line, "key=")).patient();
    for _ in 0..REQUESTS {
        assert_eq!(api.get("/v1/namespaces").await.status, 200);
    }
    let status = || std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let small = format!("less than {LIMIT_KB} kB are resident");
    eventually(&small, PATIENCE, async || {
        (field(&status(), "VmRSS:") < LIMIT_KB).then_some(())
    })
    .await;
    println!(
        "earshot dev, idle: {} MB resident, {} MB at most",
        field(&status(), "VmRSS:") / 1000,
        field(&status(), "VmHWM:") / 1000
    );
    assert!(process.terminate(PATIENCE).success());
}

/// Returns a field in kB.
fn field(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
