//! Compares the process's clock with the database's.
//!
//! The database's clock orders what must be ordered across replicas, but times of posts and deliveries come from the
//! process's clock. If that is weeks off, no partition exists for such rows, so a process whose clock is far off takes
//! no work.

use std::time::Duration;

use domain::Timestamp;
use runtime::Check;
use store::{Pool, replicas};
use tokio::{sync::watch, time::Instant};

use crate::patience::with_timeout;

const INTERVAL: Duration = Duration::from_secs(5);
/// A larger difference is reported.
const TOLERANCE: Duration = Duration::from_secs(5);
/// With a larger difference the process takes no work.
const MAX_SKEW: Duration = Duration::from_secs(3_600);

runtime::metrics! {
    static CLOCK_SKEW: Gauge = "earshot_clock_skew_seconds",
        "How far this process's clock is ahead of the database's";
}

pub(crate) struct Clock {
    /// True after the first comparison that found the clocks in agreement.
    pub(crate) was_right: watch::Sender<bool>,
    pub(crate) is_wrong: watch::Sender<bool>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            was_right: watch::Sender::new(false),
            is_wrong: watch::Sender::new(false),
        }
    }
}

impl Clock {
    /// Compares the clocks, and returns the time of the next comparison.
    pub(crate) async fn compare(&self, pool: &Pool, check: &Check) -> Instant {
        let compared = with_timeout(pool, async |conn| {
            let before = Timestamp::now();
            let clock = replicas::clock(conn).await?;
            Ok((before, clock, Timestamp::now()))
        });
        // Another task reports that the database is unavailable.
        if let Ok((before, clock, after)) = compared.await {
            // The database read its clock somewhere in between.
            let ahead = before.micros().saturating_sub(clock.micros());
            let behind = clock.micros().saturating_sub(after.micros());
            let skew = Duration::from_micros(ahead.max(behind).max(0).unsigned_abs());
            let seconds = skew.as_secs_f64();
            CLOCK_SKEW.set(if ahead > 0 { seconds } else { -seconds });
            self.report(skew, ahead > 0, check);
        }
        Instant::now() + INTERVAL
    }

    fn report(&self, skew: Duration, is_ahead: bool, check: &Check) {
        let is_wrong = skew > MAX_SKEW;
        let direction = if is_ahead { "ahead of" } else { "behind" };
        let seconds = skew.as_secs();
        let detail = format!("this process's clock is {seconds} s {direction} the database's");
        if is_wrong {
            check.unavailable(format!("{detail}: it takes no work"));
        } else if skew > TOLERANCE {
            check.degraded(detail.clone());
        } else {
            check.ok();
        }
        if self.is_wrong.send_replace(is_wrong) != is_wrong {
            if is_wrong {
                tracing::error!("{detail}: taking no work");
            } else {
                tracing::info!("{detail}: taking work again");
            }
        }
        if !is_wrong {
            self.was_right.send_replace(true);
        }
    }
}
