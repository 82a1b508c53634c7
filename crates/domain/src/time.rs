//! Timestamps: RFC 3339, UTC, exactly six fractional digits.
//!
//! PostgreSQL stores microseconds, so a timestamp from a response equals the stored one. Input may have any RFC
//! 3339 offset.

use std::{fmt, str::FromStr};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
/// A time in UTC with a precision of one microsecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    pub const UNIX_EPOCH: Self = Self(DateTime::UNIX_EPOCH);

    /// The current time, truncated to microseconds.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the wall clock"
    )]
    pub fn now() -> Self {
        Self::from(Utc::now())
    }

    /// `None` outside the years that chrono supports.
    pub fn from_micros(micros: i64) -> Option<Self> {
        DateTime::from_timestamp_micros(micros).map(Self)
    }

    pub fn micros(self) -> i64 {
        self.0.timestamp_micros()
    }

    pub fn to_chrono(self) -> DateTime<Utc> {
        self.0
    }

    /// Saturates at the ends of the calendar.
    #[must_use]
    pub fn plus(self, duration: std::time::Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.0
            .checked_add_signed(TimeDelta::microseconds(micros))
            .map_or(Self(DateTime::<Utc>::MAX_UTC), Self)
    }

    #[must_use]
    pub fn minus(self, duration: std::time::Duration) -> Self {
        let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        self.0
            .checked_sub_signed(TimeDelta::microseconds(micros))
            .map_or(Self(DateTime::<Utc>::MIN_UTC), Self)
    }

    /// Time since `earlier`; zero if it is in the future.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        (self.0 - earlier.0).to_std().unwrap_or_default()
    }
}

/// Truncated to microseconds; a leap second becomes the second after it, as in databases.
impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self(DateTime::from_timestamp_micros(time.timestamp_micros()).unwrap_or(time))
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(time: Timestamp) -> Self {
        time.0
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

/// The text is not an RFC 3339 date and time.
#[derive(Debug, thiserror::Error)]
#[error("not an RFC 3339 timestamp")]
pub struct ParseTimestampError(#[source] chrono::ParseError);

impl FromStr for Timestamp {
    type Err = ParseTimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        DateTime::parse_from_rfc3339(text)
            .map(|time| Self::from(time.with_timezone(&Utc)))
            .map_err(ParseTimestampError)
    }
}

crate::text::serde_as_text!(Timestamp);

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn prints_utc_with_six_digits() {
        let time: Timestamp = "2026-11-21T02:02:03.0001234+01:00".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-21T01:02:03.000123Z");
    }

    #[test]
    fn a_leap_second_is_the_next_second() {
        let time: Timestamp = "2016-12-31T23:59:60.5Z".parse().unwrap();
        assert_eq!(time.to_string(), "2017-01-01T00:00:00.500000Z");
    }

    #[test]
    fn the_printed_form_parses_back_equal() {
        let now = Timestamp::now();
        assert_eq!(now.to_string().parse::<Timestamp>().unwrap(), now);
    }
}
