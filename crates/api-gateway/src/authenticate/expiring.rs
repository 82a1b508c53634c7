//! Warns of API keys in use that expire soon, by a metric and in the log.

use std::{
    collections::{HashMap, hash_map::Entry},
    time::{Duration, Instant},
};

use domain::{Id, Timestamp};
use store::keys;

use crate::{ApiError, database::Database};

/// Minimum time between two warnings of the same key.
const WARN_EVERY: Duration = Duration::from_hours(1);

runtime::metrics! {
    static EXPIRING: IntGauge = "earshot_keys_expiring",
        "API keys in use that expire soon.";
}

/// Keys that expire soon, with the time of the last warning.
#[derive(Default)]
pub(crate) struct ExpiringKeys {
    warned: HashMap<Id, Instant>,
}

impl ExpiringKeys {
    /// Counts the keys, and warns of those that it did not warn of recently.
    pub(crate) async fn update(&mut self, database: &Database) -> Result<(), ApiError> {
        let keys = {
            let mut conn = database.connection().await?;
            keys::expiring(&mut conn, Timestamp::now()).await?
        };
        EXPIRING.set(i64::try_from(keys.len()).unwrap_or(i64::MAX));
        self.warned.retain(|_, at| at.elapsed() < WARN_EVERY);
        for key in keys {
            if let (Some(time), Entry::Vacant(warned)) =
                (key.expire_time, self.warned.entry(key.id))
            {
                warned.insert(Instant::now());
                tracing::warn!(
                    api_key.id = %key.id, account = key.account_name, expire_time = %time,
                    replaced_by = key.replaced_by.map(tracing::field::display),
                    "an API key that is in use expires soon"
                );
            }
        }
        Ok(())
    }
}
