//! Parameters of one case, chosen by its seed.

use std::{fmt, time::Duration};

use super::failing::Numbers;

/// Number of posts before the backlog.
pub(super) const KNOWN: u64 = 120;
/// Maximum number of posts that are published while the backlog is read.
pub(super) const MEANWHILE: u64 = 90;

/// Seconds between posts.
#[derive(Debug, Clone, Copy)]
enum Spacing {
    Even(u64),
    /// One second to two hours, each order of magnitude equally often.
    Mixed,
    /// Up to 60 posts within seconds, then a pause of up to three hours.
    Bursts,
}

/// How far a poll gets before its limits end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// To the end, unless a page fails.
    Fast,
    /// The minimum number of pages that a poll may read.
    Slow,
    /// Each poll differently.
    Mixed,
}

#[derive(Debug)]
pub(super) struct Case {
    platform: &'static str,
    seed: u64,
    /// Posts that are published at once, and those that follow before all of the first are read.
    pub(super) backlogs: [u64; 2],
    spacing: Spacing,
    /// The time of each post, in seconds since the first.
    pub(super) times: Vec<u64>,
    pub(super) percent: u64,
    pub(super) pace: Pace,
    /// True if requests fail from the feed's first poll on.
    pub(super) fails_at_first: bool,
    /// True if now and then no request succeeds for several polls.
    pub(super) has_silences: bool,
}

impl Case {
    pub(super) fn draw(
        platform: &'static str,
        seed: u64,
        most_posts: u64,
        most_span: Duration,
        numbers: &Numbers,
    ) -> Self {
        let span = 100 + numbers.below(most_posts - 99);
        // Long backlogs are rare, because they take long.
        let count = if seed % 5 == 4 { span } else { 100 + span / 10 };
        let second = if numbers.below(2) == 0 { count / 3 } else { 0 };
        let spacing = match numbers.below(6) {
            0 => Spacing::Mixed,
            1 => Spacing::Bursts,
            _ => Spacing::Even(numbers.one_of([1, 7, 60, 3_600, 7_200])),
        };
        Self {
            platform,
            seed,
            backlogs: [count - second, second],
            spacing,
            times: times(spacing, KNOWN + count + MEANWHILE, most_span, numbers),
            percent: 5 + numbers.below(36),
            pace: numbers.one_of([Pace::Fast, Pace::Slow, Pace::Mixed]),
            fails_at_first: numbers.below(4) == 0,
            has_silences: numbers.below(3) == 0,
        }
    }

    /// Time from the first post to the last.
    pub(super) fn span(&self) -> Duration {
        Duration::from_secs(self.times.last().copied().unwrap_or_default())
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            platform,
            seed,
            backlogs,
            spacing,
            percent,
            pace,
            fails_at_first,
            has_silences,
            ..
        } = self;
        write!(
            f,
            "{platform} seed {seed}: backlogs {backlogs:?}, {spacing:?}, {percent} % fail, {pace:?}, at \
             first: {fails_at_first}, silences: {has_silences}"
        )
    }
}

fn times(spacing: Spacing, count: u64, most_span: Duration, numbers: &Numbers) -> Vec<u64> {
    let mut at = 0;
    let mut in_burst = 0;
    let mut times: Vec<u64> = Vec::new();
    for _ in 0..count {
        times.push(at);
        at += match spacing {
            Spacing::Even(seconds) => seconds,
            Spacing::Mixed => {
                let magnitude = numbers.one_of([1, 10, 100, 1_000, 7_200]);
                1 + numbers.below(magnitude)
            }
            Spacing::Bursts if in_burst > 0 => {
                in_burst -= 1;
                numbers.below(3)
            }
            Spacing::Bursts => {
                in_burst = numbers.below(60);
                600 + numbers.below(10_000)
            }
        };
    }
    let most = most_span.as_secs();
    if at > most {
        for time in &mut times {
            *time = *time * most / at;
        }
    }
    times
}
