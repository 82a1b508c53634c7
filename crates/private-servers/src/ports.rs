//! Free ports on 127.0.0.1.

use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail};

const LOWEST: u16 = 15_000;
const TRIES: u32 = 500;

/// Locks of the ports that this process got.
static RESERVED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Finds a port without a listener.
///
/// It is picked at random below the kernel's range for outgoing connections, so that none of these takes the
/// port of a server that is down for a moment. Until this process ends, no other one gets the port from here.
pub fn free_port() -> Result<u16> {
    let above = ephemeral_start().max(LOWEST + 1000);
    for _ in 0..TRIES {
        let random = RandomState::new().build_hasher().finish();
        let offset = u16::try_from(random % u64::from(above - LOWEST)).unwrap_or_default();
        let port = LOWEST + offset;
        if reserve(port) && is_free(port) {
            return Ok(port);
        }
    }
    bail!("no free port between {LOWEST} and {above} in {TRIES} tries")
}

/// Locks a file for `port`. Returns false if a process holds the lock. Where no file can be locked, nothing is reserved.
fn reserve(port: u16) -> bool {
    let directory = std::env::temp_dir().join("earshot-ports");
    let file = fs::create_dir_all(&directory)
        .and_then(|()| File::create(directory.join(port.to_string())));
    let Ok(file) = file else {
        return true;
    };
    match file.try_lock() {
        Ok(()) => {
            let mut reserved = RESERVED.lock().unwrap_or_else(PoisonError::into_inner);
            reserved.push(file);
            true
        }
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => true,
    }
}

/// Returns true if a server could listen on `port` now.
pub(crate) fn is_free(port: u16) -> bool {
    // Some systems allow the wildcard although the address is taken, so both are tried.
    [Ipv4Addr::UNSPECIFIED, Ipv4Addr::LOCALHOST]
        .iter()
        .all(|address| TcpListener::bind((*address, port)).is_ok())
}

fn ephemeral_start() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_port_can_be_bound_once() {
        let port = free_port().unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(!is_free(port));
    }

    #[test]
    fn port_is_reserved_once() {
        let port = free_port().unwrap();
        assert!(is_free(port) && !reserve(port));
    }
}
