//! Encryption keys that change while a process runs.

use std::{sync::Arc, time::Duration};

use backbone::{follow_keys, sealer};
use test_support::eventually;
use tokio_util::sync::CancellationToken;

const OLD: &str = "old:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "new:HwECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[tokio::test]
async fn changed_key_files_are_reloaded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    write(OLD);
    let path = file.display().to_string();
    let variables = vec![("EARSHOT_SECRETS__ENCRYPTION_KEYS_FILE".to_owned(), path)];
    let config = Arc::new(runtime::config::load(None, variables).unwrap());
    let sealer = sealer(&config).unwrap();
    let sealed = sealer.seal(b"secret", "a");
    let stop = CancellationToken::new();
    let tick = Duration::from_millis(10);
    let following = tokio::spawn(follow_keys(config, sealer.clone(), tick, stop.clone()));

    // An invalid key changes nothing.
    for wrong in ["", "nonsense"] {
        write(wrong);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(sealer.open(&sealed, "a").unwrap(), b"secret");
    }
    write(&format!("{NEW}\n{OLD}\n"));
    let by_new = |sealed: &[u8]| sealed[2..5] == *b"new";
    eventually("the new key seals", async || {
        by_new(&sealer.seal(b"secret", "a"))
    })
    .await;
    assert_eq!(sealer.open(&sealed, "a").unwrap(), b"secret");
    write(NEW);
    eventually("the old key is gone", async || {
        sealer.open(&sealed, "a").is_err()
    })
    .await;
    stop.cancel();
    following.await.unwrap();
}
