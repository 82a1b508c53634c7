//! The measured gateway: the release binary, in a separate process.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use tokio::net::TcpStream;

use super::load::Request;
use crate::dispatch::cpu;

pub(crate) struct Gateway {
    process: Child,
    address: SocketAddr,
}

impl Gateway {
    /// Starts the gateway on the database at `url`. It has no broker: events stay in the process.
    pub(crate) fn start(url: &str, home: &Path) -> Result<Self> {
        let program = std::env::current_exe()?.with_file_name("api-gateway");
        let (address, ops) = (free_address()?, free_address()?);
        let log = fs::File::create(home.join("gateway.log"))?;
        let process = Command::new(&program)
            .env("EARSHOT_DATABASE__URL", url)
            .env("EARSHOT_DATABASE__MAX_CONNECTIONS", "10")
            .env("EARSHOT_BUS__URL", "amqp://127.0.0.1:1")
            .env("EARSHOT_GATEWAY__LISTEN", address.to_string())
            .env("EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE", "1000000")
            .env("EARSHOT_OPS__LISTEN", ops.to_string())
            .env("EARSHOT_SECRETS__ENCRYPTION_KEYS", KEY)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        Ok(Self { process, address })
    }

    /// Waits until the gateway accepts connections.
    pub(crate) async fn wait(&self) -> Result<()> {
        for _ in 0..200 {
            if TcpStream::connect(self.address).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the gateway does not listen; see gateway.log")
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn get(&self, key: &str, path: &str) -> Request {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\r\n",
            self.address
        );
        Request(head.into_bytes())
    }

    pub(crate) fn post(&self, key: &str, path: &str, body: &str) -> Request {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        Request(head.into_bytes())
    }

    /// Returns the resident memory of the process.
    pub(crate) fn resident_mib(&self) -> Result<f64> {
        Ok(cpu::resident_bytes(self.process.id())? / 1_048_576.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A key that protects no real data.
const KEY: &str = "bench:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
