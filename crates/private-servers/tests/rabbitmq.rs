//! A real RabbitMQ node: started, killed, started again, stopped.

#![cfg(target_os = "linux")] // looks into /proc
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use private_servers::RabbitMq;

#[test]
fn killed_node_restarts_on_the_same_port_with_its_data() {
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
    until_ended(home.path());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();

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
    until_ended(home.path());
    TcpStream::connect(("127.0.0.1", port)).unwrap_err();
}

#[test]
fn nodes_of_a_cluster_survive_the_death_of_the_first() {
    let home = tempfile::tempdir().unwrap();
    let mut first = RabbitMq::start(&home.path().join("1")).unwrap();
    let peer = first.start_peer(&home.path().join("2"), "peer").unwrap();
    let running = |node: &RabbitMq| {
        // The functions of RabbitMQ that list them differ by version.
        let list = "[node() | nodes()].";
        node.control(&["eval", list]).unwrap().matches('@').count()
    };
    assert_eq!(running(&peer), 2);

    first.kill();
    assert_eq!(running(&peer), 1);
    first.restart().unwrap();
    assert_eq!((running(&first), running(&peer)), (2, 2));

    drop((first, peer));
    until_ended(home.path());
}

/// A file that a node writes once, into a new data directory.
fn cluster_identity(home: &Path) -> PathBuf {
    home.join("data/earshot@localhost/cluster_nodes.config")
}

/// Waits until no process of the node is left: those of a killed group end one by one.
fn until_ended(home: &Path) {
    while processes_of(home) > 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
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
