//! Pace of the polls that one account has of one site, so that no account uses the scanners against a third party.
//!
//! Feeds that customers name may be 2,000 addresses of one server, and a server's busy feeds are polled every few
//! seconds. Each replica starts [`BURST`] polls at once, and then one per [`INTERVAL`], which is more than 2,000 feeds
//! need at their usual interval. A waiting poll takes only capacity of its account.
//!
//! A site is the last two labels of a host name, so that more names of one server do not raise its limit. Sites below a
//! public suffix such as `co.uk` count as one, which only slows accounts that poll very many of them.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use domain::{FeedName, Id};
use tokio::time::{Instant, sleep_until};
use url::Url;

const INTERVAL: Duration = Duration::from_millis(100);
const BURST: u32 = 20;
/// Number of entries that triggers the removal of those that limit nothing.
const SWEEP_AT: usize = 10_000;

#[derive(Default)]
pub(crate) struct SitePace {
    /// Time at which the next poll could start if there were no burst, by account and site.
    next: Mutex<HashMap<(Id, String), Instant>>,
}

impl SitePace {
    /// Waits until `account` may poll the site of `feed`. Feeds of platforms that the operator configures do not wait.
    pub(crate) async fn wait(&self, account: Id, feed: &FeedName) {
        if let Some(site) = feed.address().and_then(site) {
            let start = self.start(account, site, Instant::now());
            sleep_until(start).await;
        }
    }

    fn start(&self, account: Id, site: String, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.len() >= SWEEP_AT {
            next.retain(|_, next| *next > now);
        }
        let next = next.entry((account, site)).or_insert(now);
        let start = next.checked_sub(INTERVAL * (BURST - 1));
        *next = (*next).max(now) + INTERVAL;
        start.map_or(now, |start| start.max(now))
    }
}

fn site(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if bare.parse::<IpAddr>().is_ok() {
        return Some(host.to_owned());
    }
    let start = host.rmatch_indices('.').nth(1);
    Some(host[start.map_or(0, |(dot, _)| dot + 1)..].to_owned())
}

#[cfg(test)]
mod tests {
    use domain::{FeedName, Id};
    use tokio::time::Instant;

    use super::{BURST, INTERVAL, SitePace, site};

    fn feed(address: &str) -> FeedName {
        format!("blogs:{address}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn polls_of_an_account_at_one_site_have_a_pace() {
        let (pace, account) = (SitePace::default(), Id::generate());
        let begin = Instant::now();
        for number in 0..BURST {
            let one = feed(&format!("https://n{number}.example.com/{number}"));
            pace.wait(account, &one).await;
        }
        assert_eq!(begin.elapsed().as_millis(), 0);
        // Other accounts and other sites do not wait.
        pace.wait(Id::generate(), &feed("https://example.com/"))
            .await;
        pace.wait(account, &feed("https://example.org/")).await;
        pace.wait(account, &"forum:example.com".parse().unwrap())
            .await;
        assert_eq!(begin.elapsed().as_millis(), 0);
        for number in 1..=30 {
            pace.wait(account, &feed("https://example.com/")).await;
            assert!(begin.elapsed() >= INTERVAL * number);
        }
        tokio::time::advance(INTERVAL * BURST).await;
        let rested = Instant::now();
        for _ in 0..BURST {
            pace.wait(account, &feed("https://example.com/")).await;
        }
        assert_eq!(rested.elapsed().as_millis(), 0);
    }

    #[test]
    fn site_is_the_end_of_a_host_name_or_an_address() {
        for (address, expected) in [
            ("https://example.com/x", "example.com"),
            ("http://a.b.EXAMPLE.com.:8080/x", "example.com"),
            ("https://localhost/", "localhost"),
            ("https://192.0.2.1/", "192.0.2.1"),
            ("https://[2001:db8::1]/", "[2001:db8::1]"),
        ] {
            assert_eq!(site(address).as_deref(), Some(expected), "{address}");
        }
        assert_eq!(site("https://"), None);
    }
}
