//! Follows changes of the encryption keys, for example of a Secret that is mounted as a file.

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use runtime::{Config, Periodic, config::EncryptionKey};
use store::seal::Sealer;
use tokio_util::sync::CancellationToken;

/// Interval of checking for new keys.
pub const LOOK: Duration = Duration::from_secs(10);

/// Creates the sealer of the configured keys.
///
/// # Errors
/// If `secrets.encryption_keys` is empty.
pub fn sealer(config: &Config) -> anyhow::Result<Sealer> {
    Sealer::new(pairs(&config.secrets.encryption_keys)).context("secrets.encryption_keys")
}

fn pairs(keys: &[EncryptionKey]) -> impl Iterator<Item = (String, [u8; 32])> {
    keys.iter()
        .map(|key| (key.id().to_owned(), *key.expose_bytes()))
}

/// Reads the configuration again after each `interval`, and updates the keys of `sealer`, until `stop`. A
/// configuration that is wrong, or has no keys, changes nothing.
pub async fn follow_keys(
    config: Arc<Config>,
    sealer: Sealer,
    interval: Duration,
    stop: CancellationToken,
) {
    let mut known: Vec<_> = pairs(&config.secrets.encryption_keys).collect();
    let mut rounds = Periodic::new(&stop);
    while rounds.after(interval).await {
        let given = Arc::clone(&config);
        let read = tokio::task::spawn_blocking(move || given.read_again()).await;
        let read = match read {
            Ok(Some(read)) => read.map_err(anyhow::Error::from),
            Ok(None) => return,
            Err(panic) => Err(panic.into()),
        };
        let Some(found) = rounds.log_once("read the configuration again, keeping the keys", read)
        else {
            continue;
        };
        let keys: Vec<_> = pairs(&found.secrets.encryption_keys).collect();
        if keys.is_empty() || keys == known {
            continue;
        }
        match sealer.replace(keys.iter().cloned()) {
            Ok(()) => {
                let ids: Vec<&String> = keys.iter().map(|(id, _)| id).collect();
                tracing::info!(?ids, "the encryption keys have changed");
                known = keys;
            }
            Err(error) => tracing::warn!("the encryption keys cannot be used: {error}"),
        }
    }
}
