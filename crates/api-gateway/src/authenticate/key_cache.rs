//! Keys that were found recently, and their uses that are not stored yet.

use std::{
    collections::HashMap,
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{Id, Timestamp, key::ApiKey};
use store::keys::{self, KeyRecord};

use crate::{ApiError, database::Database};

const BELIEVED_FOR: Duration = Duration::from_secs(3);
/// How long a key that was found counts as one that has worked here.
const KNOWN_FOR: Duration = Duration::from_mins(15);
/// Size that triggers a sweep of the cache: first keys past [`KNOWN_FOR`], then keys past [`BELIEVED_FOR`].
const SWEEP_AT: usize = 4_096;

#[derive(Default)]
pub(crate) struct KeyCache {
    cached: Mutex<Cached>,
    /// Time of the last use of keys whose stored one is outdated.
    uses: Mutex<HashMap<Id, Timestamp>>,
}

/// Cached keys by id, with the time of the look-up.
type Cached = HashMap<Id, (Instant, Arc<KeyRecord>)>;

impl KeyCache {
    pub(super) async fn find(
        &self,
        database: &Database,
        id: Id,
    ) -> Result<Option<Arc<KeyRecord>>, ApiError> {
        if let Some(record) = self.believed(id) {
            return Ok(Some(record));
        }
        // The time is taken before the look-up, because the key may be revoked while the result is on its way.
        let looked_at = Instant::now();
        let mut conn = database.connection().await?;
        let record = keys::find(&mut conn, id).await?.map(Arc::new);
        if let Some(record) = &record {
            self.believe(id, looked_at, Arc::clone(record));
        }
        Ok(record)
    }

    /// Notes that a key was used, for [`KeyCache::store_uses`], unless the stored use is recent.
    pub(super) fn record_use(&self, record: &KeyRecord) {
        let now = Timestamp::now();
        if !record.is_use_outdated(now) {
            return;
        }
        // The next requests find the use recent. Once the key is read again, the stored time counts.
        if let Some((_, cached)) = self.lock().get_mut(&record.id) {
            Arc::make_mut(cached).last_use_time = Some(now);
        }
        self.uses().insert(record.id, now);
    }

    /// Stores the uses of keys. After a failure, the next call tries again.
    pub(crate) async fn store_uses(&self, database: &Database) -> Result<(), ApiError> {
        let uses: Vec<_> = take(&mut *self.uses()).into_iter().collect();
        if uses.is_empty() {
            return Ok(());
        }
        let stored = async {
            let mut conn = database.connection().await?;
            keys::record_uses(&mut conn, &uses).await?;
            Ok::<_, ApiError>(())
        };
        let stored = stored.await;
        if stored.is_err() {
            let mut noted = self.uses();
            for (id, time) in uses {
                noted.entry(id).or_insert(time);
            }
        }
        stored
    }

    /// Returns true if this exact key existed at its last look-up, and that was recent. It may have expired since.
    pub(super) fn has_worked(&self, key: &ApiKey) -> bool {
        let entries = self.lock();
        let found = entries.get(&key.id);
        found.is_some_and(|(looked_at, record)| {
            looked_at.elapsed() < KNOWN_FOR && key.matches(&record.secret_hash)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uses(&self) -> MutexGuard<'_, HashMap<Id, Timestamp>> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn believed(&self, id: Id) -> Option<Arc<KeyRecord>> {
        let entries = self.lock();
        let (looked_at, record) = entries.get(&id)?;
        (looked_at.elapsed() < BELIEVED_FOR).then(|| Arc::clone(record))
    }

    fn believe(&self, id: Id, looked_at: Instant, record: Arc<KeyRecord>) {
        let mut entries = self.lock();
        for kept in [KNOWN_FOR, BELIEVED_FOR] {
            if entries.len() >= SWEEP_AT {
                entries.retain(|_, (looked_at, _)| looked_at.elapsed() < kept);
            }
        }
        entries.insert(id, (looked_at, record));
    }
}
