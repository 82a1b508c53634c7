//! The cost of an idle `earshot dev`.

use std::time::Duration;

use crate::harness::{config, dev_command, process::Process, simulator::Simulator};

const LIMIT_KB: u64 = 100 * 1000;
const WATCHED: Duration = Duration::from_secs(3);

/// Measures the resident memory of the one process, without PostgreSQL, over three quiet seconds.
pub(crate) async fn memory() {
    let directory = tempfile::tempdir().unwrap();
    let simulator = Simulator::start(directory.path()).await;
    let settings = directory.path().join("earshot.toml");
    std::fs::write(&settings, config::common(simulator.url())).unwrap();
    let mut command = dev_command(&settings, &directory.path().join("data"));
    let mut process = Process::spawn("earshot", &mut command, directory.path());
    process
        .line("earshot ready ", Duration::from_secs(60))
        .await;

    tokio::time::sleep(WATCHED).await;
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let resident: u64 = field(&status, "VmRSS:");
    println!(
        "earshot dev, idle: {} MB resident, {} MB at most",
        resident / 1000,
        field(&status, "VmHWM:") / 1000
    );
    assert!(resident < LIMIT_KB, "{resident} kB");
    assert!(process.terminate(Duration::from_secs(60)).success());
}

/// Returns a field in kB.
fn field(status: &str, name: &str) -> u64 {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
