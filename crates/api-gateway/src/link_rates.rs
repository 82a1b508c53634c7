//! Throttle for requests that need no key: pages that links in mails lead to, and the steps of a sign-in.
//!
//! An address may send [`PER_MINUTE`] requests in a minute, so that a mail program or a scanner of links always can, and
//! people of one office can sign in. Each replica counts for itself, and mails and sign-ins apart. When the table is full,
//! the addresses with the fewest requests are forgotten, so that someone with many addresses keeps no one else out.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::authenticate::guesses::forget_lower_half;

const MINUTE: Duration = Duration::from_secs(60);
const PER_MINUTE: u32 = 120;
/// Maximum number of addresses that are counted at once.
const MAX_ADDRESSES: usize = 16_384;

#[derive(Default)]
pub(crate) struct LinkRates(Mutex<Option<Minute>>);

struct Minute {
    begin: Instant,
    counts: HashMap<IpAddr, u32>,
}

impl LinkRates {
    /// Counts a request of `address`.
    ///
    /// # Errors
    /// The time until the next minute, if the request is one too many.
    pub(crate) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = guard.take();
        let current = current.filter(|minute| now.duration_since(minute.begin) < MINUTE);
        let minute = guard.insert(current.unwrap_or_else(|| Minute {
            begin: now,
            counts: HashMap::new(),
        }));
        let rest = MINUTE.saturating_sub(now.duration_since(minute.begin));
        if minute.counts.len() >= MAX_ADDRESSES && !minute.counts.contains_key(&address) {
            forget_lower_half(&mut minute.counts);
        }
        let count = minute.counts.entry(address).or_default();
        if *count >= PER_MINUTE {
            return Err(rest);
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_an_address_are_limited_by_the_minute() {
        let (rates, begin) = (LinkRates::default(), Instant::now());
        let (one, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        for _ in 0..PER_MINUTE {
            assert_eq!(rates.take(one, begin), Ok(()));
        }
        assert_eq!(rates.take(one, begin), Err(MINUTE));
        assert_eq!(rates.take(other, begin), Ok(()));
        assert_eq!(rates.take(one, begin + MINUTE), Ok(()));
    }

    #[test]
    fn full_table_keeps_the_busiest_addresses_and_takes_new_ones() {
        let (rates, begin) = (LinkRates::default(), Instant::now());
        let busiest = IpAddr::from([192, 0, 2, 1]);
        for _ in 0..PER_MINUTE {
            assert_eq!(rates.take(busiest, begin), Ok(()));
        }
        for number in 0..4 * u32::try_from(MAX_ADDRESSES).unwrap() {
            let address = IpAddr::from(number.to_be_bytes());
            assert_eq!(rates.take(address, begin), Ok(()));
        }
        assert_eq!(rates.take(busiest, begin), Err(MINUTE));
        let counted = rates.0.lock().unwrap();
        assert!(counted.as_ref().unwrap().counts.len() <= MAX_ADDRESSES);
    }
}
