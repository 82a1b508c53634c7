//! Statistics over time: the valid queries, and the format of the result.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Serialize, Serializer};

use crate::{Issue, Issues, Timestamp};

/// Maximum number of points in one response.
const MAX_POINTS: u64 = 1_000;

/// Length of a point's interval. Points start at whole minutes, hours and days in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Interval {
    Minute,
    Hour,
    Day,
}

impl Interval {
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Minute => "1m",
            Self::Hour => "1h",
            Self::Day => "1d",
        }
    }

    pub fn duration(self) -> Duration {
        Duration::from_secs(match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        })
    }

    /// Retention period of points of this kind.
    pub fn retention(self) -> Duration {
        const DAY: u64 = 86_400;
        Duration::from_secs(match self {
            Self::Minute => 2 * DAY,
            Self::Hour => 40 * DAY,
            Self::Day => 400 * DAY,
        })
    }

    /// Start of the point that contains `time`.
    pub fn floor(self, time: Timestamp) -> Timestamp {
        let width = self.micros();
        let floored = time.micros().div_euclid(width).saturating_mul(width);
        Timestamp::from_micros(floored).unwrap_or(time)
    }

    fn micros(self) -> i64 {
        i64::try_from(self.duration().as_micros()).unwrap_or(i64::MAX)
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Interval {
    type Err = Issue;

    fn from_str(text: &str) -> Result<Self, Issue> {
        let found = Self::ALL.into_iter().find(|one| one.as_str() == text);
        found.ok_or(Issue::InvalidEnum)
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A validated period and interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatsQuery {
    pub interval: Interval,
    /// Start of the first point.
    first: Timestamp,
    count: u64,
}

impl StatsQuery {
    /// Parses the query parameters of statistics; each is the raw text or absent. Without an end the period
    /// ends `now`. The response contains all points that overlap the period, the first and the last whole.
    ///
    /// # Errors
    /// Every parameter that fails.
    pub fn parse(
        start_time: Option<&str>,
        end_time: Option<&str>,
        interval: Option<&str>,
        now: Timestamp,
    ) -> Result<Self, Issues> {
        let mut issues = Issues::default();
        let mut time = |field: &'static str, text: Option<&str>| match text {
            None | Some("") => None,
            Some(text) => text
                .parse::<Timestamp>()
                .map_err(|_malformed| issues.add(field, Issue::InvalidFormat))
                .ok(),
        };
        let (start, end) = (time("startTime", start_time), time("endTime", end_time));
        if start_time.unwrap_or_default().is_empty() {
            issues.add("startTime", Issue::Required);
        }
        let interval = match interval.unwrap_or_default() {
            "" => Ok(Interval::Hour),
            text => text.parse(),
        };
        let interval = interval.map_err(|issue| issues.add("interval", issue)).ok();
        let (Some(start), Some(interval)) = (start, interval) else {
            return Err(issues);
        };
        let end = end.unwrap_or(now);
        if end < start {
            issues.add_with_hint("startTime", Issue::OutOfRange, "after endTime");
            return Err(issues);
        }
        let first = interval.floor(start);
        let span = end.since(first).as_micros();
        let count = span.div_ceil(interval.duration().as_micros());
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        if count > MAX_POINTS {
            let hint = format!("{count} points, {MAX_POINTS} at most");
            issues.add_with_hint("interval", Issue::TooMany, hint);
        }
        issues.or(Self {
            interval,
            first,
            count,
        })
    }

    /// Start of the first point.
    pub fn start(&self) -> Timestamp {
        self.first
    }

    /// End of the last point.
    pub fn end(&self) -> Timestamp {
        self.first.plus(self.width(self.count))
    }

    /// The starts of all points, in order.
    pub fn times(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let query = *self;
        (0..query.count).map(move |at| query.first.plus(query.width(at)))
    }

    fn width(&self, points: u64) -> Duration {
        let seconds = self.interval.duration().as_secs();
        Duration::from_secs(seconds.saturating_mul(points))
    }
}

/// The response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stats {
    pub interval: Interval,
    pub points: Vec<Point>,
    /// Number of rows that were read for it.
    #[serde(skip)]
    pub rows: u64,
}

/// Counts for one interval; `None` for those that the resource does not have.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub time: Timestamp,
    /// Posts read from the currently watched feeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub posts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scans: Option<u64>,
    /// Matches that got no Scan because there were too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<DeliveryCounts>,
    /// Delay from the creation of a post to its Scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_delay_ms: Option<Quantiles>,
    /// Delay from a Scan to the acknowledgement by the customer's server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_delay_ms: Option<Quantiles>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryCounts {
    pub succeeded: u64,
    pub failed_attempts: u64,
    pub exhausted: u64,
}

/// In milliseconds; zero without measurements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    pub p50: u64,
    pub p99: u64,
}

#[cfg(test)]
mod tests {
    use super::{Interval, StatsQuery};
    use crate::{Issue, Timestamp};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn parse(start: &str, end: &str, interval: &str) -> Result<StatsQuery, Vec<(String, Issue)>> {
        let now = at("2026-11-21T12:00:30Z");
        StatsQuery::parse(Some(start), Some(end), Some(interval), now).map_err(|issues| {
            let all = issues.as_slice().iter();
            all.map(|one| (one.field.clone(), one.issue)).collect()
        })
    }

    #[test]
    fn points_that_overlap_the_time_span_are_included() {
        let query = parse("2026-11-21T11:58:59.999999Z", "", "1m").unwrap();
        let times: Vec<String> = query.times().map(|time| time.to_string()).collect();
        assert_eq!(
            times,
            [
                "2026-11-21T11:58:00.000000Z",
                "2026-11-21T11:59:00.000000Z",
                "2026-11-21T12:00:00.000000Z"
            ]
        );
        assert_eq!(query.end(), at("2026-11-21T12:01:00Z"));
        let exact = parse("2026-11-21T10:00:00Z", "2026-11-21T12:00:00Z", "").unwrap();
        assert_eq!((exact.interval, exact.times().count()), (Interval::Hour, 2));
        let none = parse("2026-11-21T10:00:00Z", "2026-11-21T10:00:00Z", "1d").unwrap();
        assert_eq!(none.times().count(), 1, "the day of the moment");
    }

    #[test]
    fn more_than_a_thousand_points_are_refused() {
        let query = parse("2026-11-21T00:00:00Z", "2026-11-21T16:40:00Z", "1m").unwrap();
        assert_eq!(query.times().count(), 1_000);
        let one = |field: &str, issue| Err(vec![(field.to_owned(), issue)]);
        for (start, end, interval, refused) in [
            (
                "2026-11-21T00:00:00Z",
                "2026-11-21T16:40:00.000001Z",
                "1m",
                one("interval", Issue::TooMany),
            ),
            (
                "0001-01-01T00:00:00Z",
                "9999-12-31T23:59:59Z",
                "1d",
                one("interval", Issue::TooMany),
            ),
            (
                "2026-11-21T13:00:00Z",
                "",
                "1h",
                one("startTime", Issue::OutOfRange),
            ),
            ("", "", "1h", one("startTime", Issue::Required)),
            (
                "yesterday",
                "",
                "1h",
                one("startTime", Issue::InvalidFormat),
            ),
            (
                "2026-11-21T00:00:00Z",
                "",
                "1w",
                one("interval", Issue::InvalidEnum),
            ),
        ] {
            assert_eq!(parse(start, end, interval), refused);
        }
        let all = parse("x", "y", "z").unwrap_err();
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn times_before_the_epoch_floor_downwards() {
        let floored = Interval::Day.floor(at("1969-12-31T12:00:00Z"));
        assert_eq!(floored, at("1969-12-31T00:00:00Z"));
    }
}
