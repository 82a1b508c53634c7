//! Resource ids: lower-case ULIDs that contain the microsecond of their creation.
//!
//! A ULID has 48 bits of milliseconds and 80 random bits. Ours store the microsecond within the millisecond in
//! the first ten of the random bits, so that ids sort like their creation times, and the id contains the
//! creation time of its row. So tables that are partitioned by time find a row by its id alone (ADR 0002).

use std::{
    fmt,
    str::FromStr,
    sync::atomic::{AtomicI64, Ordering},
};

use ulid::Ulid;
use uuid::Uuid;

use crate::Timestamp;

const CHANCE_BITS: u32 = 70;

/// A 26-character lower-case ULID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(Ulid);

impl Id {
    /// The id with only zero bits.
    pub const NIL: Self = Self(Ulid::nil());

    /// A new id, later than every other that this process has generated.
    pub fn generate() -> Self {
        static LAST: AtomicI64 = AtomicI64::new(0);
        let now = Timestamp::now().micros();
        let last = LAST
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(now.max(last + 1))
            })
            .unwrap_or(now);
        Self::at_micros(now.max(last + 1))
    }

    /// A new id with `time` as its [`Id::time`].
    pub fn at(time: Timestamp) -> Self {
        Self::at_micros(time.micros())
    }

    fn at_micros(micros: i64) -> Self {
        let micros = u64::try_from(micros).unwrap_or(0);
        let chance = rand::random::<u128>() & ((1 << CHANCE_BITS) - 1);
        let within = u128::from(micros % 1000) << CHANCE_BITS;
        Self(Ulid::from_parts(micros / 1000, within | chance))
    }

    /// Creation time of the id. For an id that we did not create: some time within its millisecond or the next,
    /// which belongs to no row.
    pub fn time(self) -> Timestamp {
        let millis = i64::try_from(self.0.timestamp_ms()).unwrap_or(i64::MAX / 1000);
        let within = i64::try_from(self.0.random() >> CHANCE_BITS).unwrap_or(0);
        // 48 bits of milliseconds reach the year 10889, well within chrono's calendar.
        Timestamp::from_micros(millis * 1000 + within).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    pub fn to_uuid(self) -> Uuid {
        Uuid::from_u128(self.0.0)
    }

    pub fn from_uuid(uuid: Uuid) -> Self {
        Self(Ulid(uuid.as_u128()))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().to_ascii_lowercase())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a lower-case ULID.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a lower-case ULID")]
pub struct ParseIdError;

impl FromStr for Id {
    type Err = ParseIdError;

    /// Accepts only the canonical form: an id has one spelling.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = Ulid::from_string(text).ok().map(Self).ok_or(ParseIdError)?;
        let mut canonical = [0_u8; ulid::ULID_LEN];
        let canonical = parsed.0.array_to_str(&mut canonical);
        let same = canonical.len() == text.len()
            && canonical
                .bytes()
                .zip(text.bytes())
                .all(|(c, t)| c.to_ascii_lowercase() == t);
        same.then_some(parsed).ok_or(ParseIdError)
    }
}

crate::text::serde_as_text!(Id);

#[cfg(test)]
mod tests {
    use super::Id;
    use crate::Timestamp;

    #[test]
    fn id_contains_its_time_to_the_microsecond() {
        let time: Timestamp = "2026-11-21T01:02:03.000999Z".parse().unwrap();
        assert_eq!(Id::at(time).time(), time);
    }

    #[test]
    fn generated_ids_ascend() {
        let ids: Vec<Id> = (0..10_000).map(|_| Id::generate()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn id_has_exactly_one_spelling() {
        let id = Id::generate().to_string();
        assert!(id.parse::<Id>().is_ok());
        for wrong in [
            id.to_uppercase(),
            format!("{id}0"),
            id[1..].to_owned(),
            "8zzzzzzzzzzzzzzzzzzzzzzzzz".into(),
        ] {
            assert!(wrong.parse::<Id>().is_err(), "{wrong}");
        }
        // Crockford's alphabet reads `o` as zero; our ids do not allow it.
        assert!("01jd0000000000000000000o00".parse::<Id>().is_err());
    }
}
