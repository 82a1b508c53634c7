//! Limits on the number of open connections, of one address and of all.
//!
//! An address is that of the peer, with or without a key: offices and proxies share one, so the limit is far above
//! what one client needs. Of an IPv6 address only the first 64 bits count. Addresses in `gateway.trusted_proxies` are
//! not limited.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, SocketAddr},
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use ipnet::IpNet;

use crate::authenticate::guesses::network;

/// Maximum number of open connections of the process. Others wait until one of these ends. A connection needs about
/// 64 KiB at most before its client has shown a key.
pub(crate) const MAX_CONNECTIONS: usize = 2_048;
/// Maximum number of open connections of one address.
const MAX_OF_ADDRESS: usize = MAX_CONNECTIONS / 8;

runtime::metrics! {
    static REFUSED: IntCounter = "earshot_connections_refused_total",
        "Connections that were closed at once because their address had too many open.";
}

/// Number of open connections by address.
pub(crate) struct Peers {
    open: Mutex<HashMap<IpAddr, usize>>,
    proxies: Vec<IpNet>,
}

/// An open connection. Dropping this ends it.
pub(crate) struct Peer {
    address: Option<IpAddr>,
    peers: Arc<Peers>,
}

impl Peers {
    pub(crate) fn new(proxies: Vec<IpNet>) -> Self {
        // It begins at zero, so that alerts see the first increase.
        LazyLock::force(&REFUSED);
        Self {
            open: Mutex::default(),
            proxies,
        }
    }

    /// Counts a connection. Returns `None` if its address has too many open.
    pub(crate) fn admit(self: &Arc<Self>, peer: Option<SocketAddr>) -> Option<Peer> {
        let address = peer.map(|peer| peer.ip().to_canonical());
        let is_proxy = |address: &IpAddr| self.proxies.iter().any(|proxy| proxy.contains(address));
        let address = address.filter(|address| !is_proxy(address)).map(network);
        if let Some(address) = address {
            let mut open = self.open();
            let count = open.entry(address).or_default();
            if *count >= MAX_OF_ADDRESS {
                REFUSED.inc();
                return None;
            }
            *count += 1;
        }
        Some(Peer {
            address,
            peers: Arc::clone(self),
        })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        if let Entry::Occupied(mut count) = self.peers.open().entry(address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, sync::Arc};

    use super::{MAX_OF_ADDRESS, Peers};

    fn at(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().unwrap(), 1))
    }

    #[test]
    fn connections_of_an_address_are_limited_until_one_ends() {
        let peers = Arc::new(Peers::new(Vec::new()));
        for (one, same, other) in [
            ("192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"),
            ("2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"),
        ] {
            let mut open: Vec<_> = (0..MAX_OF_ADDRESS)
                .map(|_| peers.admit(at(one)).unwrap())
                .collect();
            assert!(peers.admit(at(same)).is_none());
            assert!(peers.admit(at(other)).is_some());
            open.pop();
            assert!(peers.admit(at(same)).is_some());
        }
        assert!(peers.open().is_empty(), "ended connections are forgotten");
    }

    #[test]
    fn trusted_proxies_have_no_limit_of_their_own() {
        let peers = Arc::new(Peers::new(vec!["10.0.0.0/8".parse().unwrap()]));
        let open: Vec<_> = (0..=MAX_OF_ADDRESS)
            .map(|_| peers.admit(at("10.1.2.3")))
            .collect();
        assert!(open.iter().all(Option::is_some));
    }
}
