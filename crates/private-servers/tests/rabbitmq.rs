//! A real RabbitMQ node: started, killed, started again, stopped.

#![cfg(target_os = "linux")] // looks into /proc
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Instant;

use private_servers::RabbitMq;

#[test]
fn a_node_comes_back_from_a_kill_on_the_same_port_with_the_same_data() {
    let home = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let mut node = RabbitMq::start(home.path()).unwrap();
    let (url, port) = (node.amqp_url(), node.port());
    assert_eq!(url, format!("amqp://guest:guest@127.0.0.1:{port}/%2f"));
    let identity = std::fs::read(cluster_identity(home.path())).unwrap();
    println!("first start: {:?}", began.elapsed());

    assert!(processes_of(home.path()) >= 2);

    node.kill();
    assert!(!node.is_running());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert_eq!(processes_of(home.path()), 0);

    let began = Instant::now();
    node.restart().unwrap();
    println!("start after a kill: {:?}", began.elapsed());
    assert!(node.is_running());
    assert_eq!(node.amqp_url(), url);
    assert_eq!(
        std::fs::read(cluster_identity(home.path())).unwrap(),
        identity
    );

    let error = RabbitMq::start(home.path()).unwrap_err().to_string();
    assert!(
        error.contains(&home.path().display().to_string()),
        "{error}"
    );

    let began = Instant::now();
    drop(node);
    println!("stop: {:?}", began.elapsed());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
    assert_eq!(processes_of(home.path()), 0);
}

/// A file that a node writes once, into a new data directory.
fn cluster_identity(home: &Path) -> PathBuf {
    home.join("data/earshot@localhost/cluster_nodes.config")
}

/// Number of processes with the node's home in their environment: its Erlang machine, its epmd.
fn processes_of(home: &Path) -> usize {
    let home = home.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    // Processes of other users, and those that have just ended, cannot be read.
    let environments =
        processes.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments
        .filter(|environment| String::from_utf8_lossy(environment).contains(home))
        .count()
}
