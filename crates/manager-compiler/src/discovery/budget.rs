//! Request budget of searches. They share the budget of the scanners, and never use its second half, which is reserved
//! for posts.
//!
//! Costs one short transaction per search.

use std::time::Duration;

use async_trait::async_trait;
use platforms::{Budget, MAX_PAUSE, Settings, budget::Left};
use store::{Pool, platform_budgets, rates::Wanted};

/// Retry delay when the database does not answer, or gives no delay.
const AFTER_ERROR: Duration = Duration::from_secs(2);

pub(super) struct Shared {
    pool: Pool,
    credential: String,
    requests_per_minute: Option<u32>,
}

impl Shared {
    pub(super) fn new(pool: Pool, settings: &Settings) -> Self {
        Self {
            pool,
            credential: settings.credential(),
            requests_per_minute: settings.access.requests_per_minute,
        }
    }

    async fn take(&self) -> Result<Result<(), Duration>, store::Error> {
        let mut conn = self.pool.get().await?;
        let silent = |silent: Duration| {
            if silent.is_zero() {
                Ok(())
            } else {
                Err(silent)
            }
        };
        let Some(limit) = self.requests_per_minute else {
            let stand = platform_budgets::silent(&mut conn, &self.credential).await?;
            return Ok(silent(stand));
        };
        let wanted = Wanted {
            id: rand::random(),
            least: 1,
            most: 1,
        };
        let (credential, kept) = (&self.credential, limit / 2);
        let stand =
            platform_budgets::lease(&mut conn, credential, limit, None, Some(&wanted), kept)
                .await?;
        Ok(silent(stand.silent).and(match stand.grant {
            Some(grant) if grant.points > 0 => Ok(()),
            Some(grant) => Err(Duration::from_millis(grant.retry_in_ms.unsigned_abs())),
            None => Err(AFTER_ERROR),
        }))
    }
}

#[async_trait]
impl Budget for Shared {
    async fn request(&self) -> Result<(), Duration> {
        self.take().await.unwrap_or(Err(AFTER_ERROR))
    }

    /// Searches do not pay per post.
    async fn posts(&self, _wanted: u32) -> Result<u32, Duration> {
        Err(AFTER_ERROR)
    }

    async fn record_remaining(&self, left: Left) {
        if left.requests > 0 {
            return;
        }
        let recorded = async {
            let mut conn = self.pool.get().await?;
            let time = left.reset_in.min(MAX_PAUSE);
            platform_budgets::silence(&mut conn, &self.credential, time).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = recorded.await {
            let error = anyhow::Error::from(error);
            tracing::debug!("cannot pause the platform for scanners: {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use runtime::config::Access;
    use test_support::TestDatabase;

    use super::*;

    #[tokio::test]
    async fn searches_use_at_most_half_of_the_scanners_budget() {
        let database = TestDatabase::create().await;
        let settings = |limit| Settings {
            name: "forum".to_owned(),
            kind: "lemmy".to_owned(),
            base_url: "https://forum.example".parse().ok(),
            access: Access {
                requests_per_minute: limit,
                ..Access::default()
            },
            ..Settings::default()
        };
        let budget = Shared::new(database.pool(), &settings(Some(10)));
        for _ in 0..5 {
            assert_eq!(budget.request().await, Ok(()));
        }
        assert!(budget.request().await.is_err());
        let left = "platform_budgets WHERE credential LIKE 'lemmy:forum.example:%'";
        assert_eq!(database.count(left).await, 1);

        // A process that learns that nothing is left informs all others.
        let unbound = Shared::new(database.pool(), &settings(None));
        assert_eq!(unbound.request().await, Ok(()));
        let none = Left {
            requests: 0,
            reset_in: Duration::from_secs(60),
        };
        budget.record_remaining(none).await;
        assert!(unbound.request().await.is_err());

        // A platform that asks for a day is asked again after minutes.
        let none = Left {
            requests: 0,
            reset_in: Duration::from_hours(24),
        };
        budget.record_remaining(none).await;
        let wait = unbound.request().await.unwrap_err();
        assert!(wait <= Duration::from_mins(15), "{wait:?}");
    }
}
