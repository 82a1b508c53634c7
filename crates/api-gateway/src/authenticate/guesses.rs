//! Throttle for failed authentication, per client address.
//!
//! A key has 256 random bits, so no one guesses one. The throttle saves the look-up that each attempt costs, and
//! makes attempts visible (`earshot_failed_keys_total`, and a line in the log).
//!
//! An address may fail [`BURST`] times, and once more per [`INTERVAL`]. After that, its invalid keys get 429, and its
//! look-ups wait in a queue: [`LOOKUPS`] run at a time for all such addresses. A valid key of such an address waits for
//! [`LONGEST_QUEUE`] at most, and not at all if it has worked here recently ([`super::KeyCache::has_worked`]). At most
//! [`MAX_WAITING`] requests of an address wait, and more are refused at once. So a valid key is refused only while as
//! many requests of the same address wait, or thousands of many other throttled addresses. Each replica counts for itself.
//!
//! The address is that of the connection. If that is one of `gateway.trusted_proxies`, it is the last address in
//! `X-Forwarded-For` that is not a trusted proxy. Of an IPv6 address only the first 64 bits count, because one
//! client owns all addresses behind them.
//!
//! Memory: [`MAX_ADDRESSES`] entries of about 40 bytes. When the table is full, the addresses with the fewest
//! failures are forgotten.

use std::{
    collections::{HashMap, hash_map::Entry},
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use actix_web::{HttpRequest, http::header::HeaderMap};
use ipnet::IpNet;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Failures that an address may have at once.
pub(crate) const BURST: u32 = 20;
/// Time until an address may fail once more.
const INTERVAL: Duration = Duration::from_secs(1);
/// Look-ups at a time for all addresses that are throttled.
const LOOKUPS: usize = 4;
/// Requests of one address that wait for such a look-up: as many as take a fraction of [`LONGEST_QUEUE`].
const MAX_WAITING: usize = 1_024;
/// Longest wait for such a look-up.
const LONGEST_QUEUE: Duration = Duration::from_secs(2);
/// Longest wait, regardless of how many failures the address had.
const MAX_WAIT: Duration = Duration::from_secs(20);
const MAX_ADDRESSES: usize = 16_384;
/// Maximum length of a chain of proxies. Addresses further away are not read.
const MAX_HOPS: usize = 16;

runtime::metrics! {
    static FAILED: IntCounterVec = "earshot_failed_keys_total",
        "Requests with a key that does not work, by what became of them.", ["outcome"];
}

/// Failed attempts by address. Each address has the time when all of its attempts are forgiven.
pub(crate) struct Guesses {
    owed_until: Mutex<HashMap<IpAddr, Instant>>,
    lookups: Semaphore,
    /// Number of requests that wait for a look-up, by address.
    waiting: Mutex<HashMap<IpAddr, usize>>,
    proxies: Vec<IpNet>,
}

/// A request that waits for a look-up. Dropping this ends the wait.
struct Waiting<'a> {
    guesses: &'a Guesses,
    address: IpAddr,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.guesses.waiting().entry(self.address) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

impl Guesses {
    pub(crate) fn new(proxies: Vec<IpNet>) -> Self {
        Self {
            owed_until: Mutex::default(),
            lookups: Semaphore::new(LOOKUPS),
            waiting: Mutex::default(),
            proxies,
        }
    }

    /// Returns the address of the client.
    pub(crate) fn origin(&self, request: &HttpRequest) -> IpAddr {
        let peer = request.peer_addr().map(|peer| peer.ip());
        // A connection without a peer address is local.
        let peer = peer.unwrap_or(IpAddr::V6(Ipv6Addr::LOCALHOST));
        self.client(peer, request.headers())
    }

    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let values: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .filter_map(|value| value.to_str().ok())
            .collect();
        let hops = values.iter().rev().flat_map(|value| value.rsplit(','));
        for hop in hops.take(MAX_HOPS) {
            if !self.proxies.iter().any(|network| network.contains(&client)) {
                break;
            }
            match parse_hop(hop) {
                Some(address) => client = address,
                // The first untrusted address is the best known origin.
                None => break,
            }
        }
        client
    }

    /// Waits until a key from `address`, which is throttled, may be looked up. `None` if too many wait.
    pub(super) async fn turn(&self, address: IpAddr) -> Option<SemaphorePermit<'_>> {
        let _waiting = self.begin_wait(address)?;
        let turn = tokio::time::timeout(LONGEST_QUEUE, self.lookups.acquire());
        turn.await.ok()?.ok()
    }

    /// Counts a request of `address` that waits. `None` if the address has too many.
    fn begin_wait(&self, address: IpAddr) -> Option<Waiting<'_>> {
        let mut waiting = self.waiting();
        let count = waiting.entry(address).or_default();
        if *count >= MAX_WAITING {
            return None;
        }
        *count += 1;
        Some(Waiting {
            guesses: self,
            address,
        })
    }

    /// Returns how long `address` should wait before its next wrong key; `None` if it is not throttled.
    pub(super) fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let owed = self.lock().get(&address)?.saturating_duration_since(now);
        let wait = owed.saturating_sub(INTERVAL * (BURST - 1));
        if wait.is_zero() {
            return None;
        }
        FAILED.with_label_values(&["throttled"]).inc();
        Some(wait.min(MAX_WAIT))
    }

    /// Counts a failed attempt from `address`.
    pub(super) fn failed(&self, address: IpAddr, now: Instant) {
        FAILED.with_label_values(&["refused"]).inc();
        let most = INTERVAL * (BURST - 1) + MAX_WAIT;
        let mut owed_until = self.lock();
        if owed_until.len() >= MAX_ADDRESSES && !owed_until.contains_key(&address) {
            forget(&mut owed_until, now);
        }
        let until = owed_until.entry(address).or_insert(now);
        let owed = until.saturating_duration_since(now);
        *until = now + (owed + INTERVAL).min(most);
        let was_free = owed <= INTERVAL * (BURST - 1);
        if was_free && owed + INTERVAL > INTERVAL * (BURST - 1) {
            tracing::warn!(client.address = %address, "many keys that do not work, from one address");
        }
    }

    /// Counts a valid key that came from a network where it is not allowed. That is no guess, so it does not throttle.
    pub(super) fn refused_network() {
        FAILED.with_label_values(&["network"]).inc();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Instant>> {
        self.owed_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes at least half of the entries, so that the cost of one sweep is spread over many failures.
fn forget(owed_until: &mut HashMap<IpAddr, Instant>, now: Instant) {
    owed_until.retain(|_, until| *until > now);
    if owed_until.len() > MAX_ADDRESSES / 2 {
        forget_lower_half(owed_until);
    }
}

/// Removes the addresses with the lowest values, at least half of them. Panics on an empty map.
pub(crate) fn forget_lower_half<T: Copy + Ord>(by_address: &mut HashMap<IpAddr, T>) {
    let mut values: Vec<T> = by_address.values().copied().collect();
    let middle = values.len() / 2;
    let (_, median, _) = values.select_nth_unstable(middle);
    let median = *median;
    by_address.retain(|_, value| *value > median);
}

/// Parses an address as proxies write it, with or without a port.
fn parse_hop(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address: Option<IpAddr> = bare.unwrap_or(text).parse().ok();
    let address = address.or_else(|| {
        let with_port: std::net::SocketAddr = text.parse().ok()?;
        Some(with_port.ip())
    });
    address.map(|address| address.to_canonical())
}

/// Returns the part of `address` that identifies a client.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{http::header::HeaderMap, test::TestRequest};
    use futures::FutureExt as _;

    use super::*;

    fn guesses() -> Guesses {
        let proxies = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().unwrap());
        Guesses::new(proxies.into())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn address_may_fail_burst_times_and_then_once_per_interval() {
        let (guesses, address, other) = (guesses(), ip("192.0.2.1"), ip("192.0.2.2"));
        let mut now = Instant::now();
        for _ in 0..BURST {
            assert_eq!(guesses.wait(address, now), None);
            guesses.failed(address, now);
        }
        assert_eq!(guesses.wait(address, now), Some(INTERVAL));
        assert_eq!(guesses.wait(other, now), None);
        for _ in 0..3 {
            now += INTERVAL;
            assert_eq!(guesses.wait(address, now), None);
            guesses.failed(address, now);
            assert_eq!(guesses.wait(address, now), Some(INTERVAL));
        }
        now += INTERVAL * BURST;
        for _ in 0..BURST {
            assert_eq!(guesses.wait(address, now), None);
            guesses.failed(address, now);
        }
    }

    #[test]
    fn wait_is_bounded() {
        let (guesses, address, now) = (guesses(), ip("192.0.2.1"), Instant::now());
        for _ in 0..100_000 {
            guesses.failed(address, now);
        }
        assert_eq!(guesses.wait(address, now), Some(MAX_WAIT));
        assert_eq!(guesses.wait(address, now + MAX_WAIT), None);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_an_address_that_wait_leave_the_queue_to_other_addresses() {
        let (guesses, one, other) = (guesses(), ip("192.0.2.1"), ip("192.0.2.2"));
        let mut turns = Vec::new();
        for _ in 0..LOOKUPS {
            turns.push(guesses.turn(one).await.unwrap());
        }
        let mut waiting = Vec::new();
        for _ in 0..MAX_WAITING {
            let mut turn = Box::pin(guesses.turn(one));
            assert!(turn.as_mut().now_or_never().is_none(), "it waits");
            waiting.push(turn);
        }
        let refused = guesses.turn(one).now_or_never();
        assert!(matches!(refused, Some(None)), "it is refused at once");
        let mut others = Box::pin(guesses.turn(other));
        assert!(others.as_mut().now_or_never().is_none(), "it waits");

        // The next ones of the same address wait as soon as others have their turn.
        turns.clear();
        for turn in waiting.drain(..LOOKUPS) {
            turns.push(turn.await.unwrap());
        }
        let mut next = Box::pin(guesses.turn(one));
        assert!(next.as_mut().now_or_never().is_none(), "it waits");
        drop((turns, waiting));
        assert!(others.await.is_some());
        assert!(next.await.is_some());
        assert!(guesses.waiting().is_empty(), "no one waits any more");
    }

    #[test]
    fn memory_is_bounded_and_keeps_addresses_with_most_failures() {
        let (guesses, worst, now) = (guesses(), ip("198.51.100.1"), Instant::now());
        for _ in 0..=BURST {
            guesses.failed(worst, now);
        }
        for n in 0..200_000_u32 {
            guesses.failed(IpAddr::from((0x0b00_0000 + n).to_be_bytes()), now);
        }
        assert!(guesses.lock().len() <= MAX_ADDRESSES);
        assert!(guesses.wait(worst, now).is_some());
    }

    #[test]
    fn forwarded_addresses_are_used_from_trusted_proxies_only() {
        let guesses = guesses();
        for (peer, forwarded, client) in [
            ("192.0.2.1", &["198.51.100.7"][..], "192.0.2.1"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("::ffff:10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            (
                "10.0.0.1",
                &["203.0.113.9, 198.51.100.7, 10.2.3.4"],
                "198.51.100.7",
            ),
            (
                "10.0.0.1",
                &["203.0.113.9", "198.51.100.7", "fd00::1"],
                "198.51.100.7",
            ),
            ("10.0.0.1", &["198.51.100.7:1234"], "198.51.100.7"),
            ("10.0.0.1", &["[2001:db8::1]:1234"], "2001:db8::1"),
            ("10.0.0.1", &["198.51.100.7, nonsense"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.7, "], "10.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for value in forwarded {
                headers.append("x-forwarded-for".parse().unwrap(), value.parse().unwrap());
            }
            assert_eq!(
                guesses.client(ip(peer), &headers),
                ip(client),
                "{peer} {forwarded:?}"
            );
        }
    }

    #[test]
    fn ipv6_network_counts_as_one_address() {
        let guesses = guesses();
        let of = |peer: &str| {
            let peer = format!("[{peer}]:1").parse().unwrap();
            network(guesses.origin(&TestRequest::default().peer_addr(peer).to_http_request()))
        };
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), ip("192.0.2.1"));
    }
}
