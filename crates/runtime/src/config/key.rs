//! Encryption keys in the configuration.

use std::{fmt, sync::Arc};

use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretBox, zeroize::Zeroizing};

use super::setting::Setting;

const KEY_BYTES: usize = 32;

/// A key for encrypting stored data. Its id is stored with the data.
#[derive(Clone)]
pub struct EncryptionKey {
    id: String,
    bytes: Arc<SecretBox<[u8; KEY_BYTES]>>,
}

impl EncryptionKey {
    /// For a process that creates its own key, like `earshot dev`.
    pub fn new(id: impl Into<String>, bytes: [u8; KEY_BYTES]) -> Self {
        Self {
            id: id.into(),
            bytes: Arc::new(SecretBox::new(Box::new(bytes))),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn expose_bytes(&self) -> &[u8; KEY_BYTES] {
        self.bytes.expose_secret()
    }
}

impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptionKey({}, [REDACTED])", self.id)
    }
}

impl Setting for EncryptionKey {
    const FORM: &'static str = "`<id>:<base64 of 32 bytes>`";
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, String> {
        let expected = || format!("expected {}", Self::FORM);
        let (id, key) = text.trim().split_once(':').ok_or_else(expected)?;
        let sane = (1..=64).contains(&id.len())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if !sane {
            return Err(expected());
        }
        // The decoder's own error would reveal bytes of the key.
        let decoded = Zeroizing::new(
            BASE64_STANDARD
                .decode(key)
                .ok()
                .ok_or_else(|| format!("key `{id}` is not base64"))?,
        );
        let bytes = <[u8; KEY_BYTES]>::try_from(decoded.as_slice())
            .ok()
            .ok_or_else(|| format!("key `{id}` has {} bytes, not {KEY_BYTES}", decoded.len()))?;
        Ok(Self::new(id, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::{EncryptionKey, Setting};

    const KEY: &str = "2026:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_key_is_read_with_its_id() {
        let key = EncryptionKey::from_text(KEY).unwrap();
        assert_eq!((key.id(), key.expose_bytes()[31]), ("2026", 31));
    }

    #[test]
    fn wrong_key_is_refused_without_showing_it() {
        for wrong in ["", "AAEC", ":AAEC", "a b:AAEC", "k:AAEC", "k:AA*C", "k:"] {
            let reason = EncryptionKey::from_text(wrong).unwrap_err();
            assert!(!reason.contains("AA"), "{reason}");
        }
    }

    #[test]
    fn debug_output_of_a_key_shows_only_its_id() {
        let key = EncryptionKey::from_text(KEY).unwrap();
        assert_eq!(format!("{key:?}"), "EncryptionKey(2026, [REDACTED])");
    }
}
