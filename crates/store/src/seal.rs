//! Encrypts customers' header values for storage.
//!
//! ChaCha20-Poly1305 (RFC 8439) with a random nonce. The resource's name is bound as associated data, so that a
//! sealed value cannot be moved to another row. Format: `[1][length of key id][key id] [12 bytes of
//! nonce][ciphertext]`. The first configured key encrypts, and all keys decrypt, so a rotation puts a new key in
//! front. Keys can be replaced while they are in use.

use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;
use chacha20poly1305::{
    ChaCha20Poly1305, Key, KeyInit, Nonce,
    aead::{Aead, Payload},
};

const VERSION: u8 = 1;
const NONCE_BYTES: usize = 12;

/// The configured keys, the encrypting one first. Clones share them.
#[derive(Clone)]
pub struct Sealer {
    keys: Arc<ArcSwap<Keys>>,
}

type Keys = Vec<(String, ChaCha20Poly1305)>;

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.keys.load().iter().map(|(id, _)| id))
            .finish()
    }
}

/// A stored value cannot be decrypted.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("sealed by the key `{0}`, which secrets.encryption_keys does not have")]
    UnknownKey(String),
    #[error("damaged, or sealed for another resource")]
    Damaged,
}

/// The keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealerError {
    #[error("no encryption key")]
    NoKey,
    #[error("the id of an encryption key must have 1 to 255 bytes")]
    KeyId,
}

impl Sealer {
    /// Creates a sealer with these keys.
    ///
    /// # Errors
    /// If there is no key, or one whose id cannot be stored.
    pub fn new(keys: impl IntoIterator<Item = (String, [u8; 32])>) -> Result<Self, SealerError> {
        let keys = Arc::new(ArcSwap::from_pointee(Self::read(keys)?));
        Ok(Self { keys })
    }

    /// Replaces the keys in all clones.
    ///
    /// # Errors
    /// Same as [`Sealer::new`]; then the keys stay unchanged.
    pub fn replace(
        &self,
        keys: impl IntoIterator<Item = (String, [u8; 32])>,
    ) -> Result<(), SealerError> {
        self.keys.store(Arc::new(Self::read(keys)?));
        Ok(())
    }

    fn read(keys: impl IntoIterator<Item = (String, [u8; 32])>) -> Result<Keys, SealerError> {
        let keys: Keys = keys
            .into_iter()
            .map(|(id, key)| (id, ChaCha20Poly1305::new(Key::from_slice(&key))))
            .collect();
        if keys.is_empty() {
            return Err(SealerError::NoKey);
        }
        if keys.iter().any(|(id, _)| id.is_empty() || id.len() > 255) {
            return Err(SealerError::KeyId);
        }
        Ok(keys)
    }

    pub fn seal(&self, plain: &[u8], bound_to: &str) -> Vec<u8> {
        let keys = self.keys.load();
        let (id, cipher) = &keys[0];
        let nonce: [u8; NONCE_BYTES] = rand::random();
        let payload = Payload {
            msg: plain,
            aad: bound_to.as_bytes(),
        };
        let sealed = cipher
            .encrypt(Nonce::from_slice(&nonce), payload)
            .expect("a message under 256 GiB is always encrypted");
        let id_length = u8::try_from(id.len()).expect("checked by new");
        let mut out = vec![VERSION, id_length];
        out.extend(id.as_bytes());
        out.extend(nonce);
        out.extend(sealed);
        out
    }

    /// Decrypts a sealed value.
    ///
    /// # Errors
    /// If the key is not configured, or the bytes were not sealed for `bound_to`.
    pub fn open(&self, sealed: &[u8], bound_to: &str) -> Result<Vec<u8>, OpenError> {
        let (id, rest) = split(sealed)?;
        let (nonce, message) = rest
            .split_at_checked(NONCE_BYTES)
            .ok_or(OpenError::Damaged)?;
        let keys = self.keys.load();
        let (_, cipher) = keys
            .iter()
            .find(|(key, _)| key.as_bytes() == id)
            .ok_or_else(|| OpenError::UnknownKey(String::from_utf8_lossy(id).into_owned()))?;
        let payload = Payload {
            msg: message,
            aad: bound_to.as_bytes(),
        };
        cipher
            .decrypt(Nonce::from_slice(nonce), payload)
            .ok()
            .ok_or(OpenError::Damaged)
    }

    /// Encrypts a value again with the current key; `None` if that has already encrypted it.
    ///
    /// # Errors
    /// Same as [`Sealer::open`].
    pub fn reseal(&self, sealed: &[u8], bound_to: &str) -> Result<Option<Vec<u8>>, OpenError> {
        let (id, _) = split(sealed)?;
        if self.keys.load()[0].0.as_bytes() == id {
            return Ok(None);
        }
        let plain = self.open(sealed, bound_to)?;
        Ok(Some(self.seal(&plain, bound_to)))
    }
}

/// Splits into the id of the key and the rest.
fn split(sealed: &[u8]) -> Result<(&[u8], &[u8]), OpenError> {
    let ([VERSION, id_length], rest) = sealed.split_first_chunk::<2>().ok_or(OpenError::Damaged)?
    else {
        return Err(OpenError::Damaged);
    };
    rest.split_at_checked(usize::from(*id_length))
        .ok_or(OpenError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::{OpenError, Sealer};

    fn sealer(ids: &[&str]) -> Sealer {
        let key = |id: &str| [id.as_bytes()[0]; 32];
        Sealer::new(ids.iter().map(|id| ((*id).to_owned(), key(id)))).unwrap()
    }

    #[test]
    fn sealed_values_stay_readable_after_a_rotation() {
        let sealed = sealer(&["old"]).seal(b"secret", "namespaces/a");
        assert_eq!(
            sealer(&["new", "old"])
                .open(&sealed, "namespaces/a")
                .unwrap(),
            b"secret"
        );
        assert!(
            matches!(sealer(&["new"]).open(&sealed, "namespaces/a"), Err(OpenError::UnknownKey(id)) if id == "old")
        );
    }

    #[test]
    fn keys_are_replaced_in_all_clones() {
        let sealer = sealer(&["old"]);
        let clone = sealer.clone();
        let sealed = clone.seal(b"secret", "a");
        assert!(sealer.replace([]).is_err());
        let keys = [
            ("new".to_owned(), [b'n'; 32]),
            ("old".to_owned(), [b'o'; 32]),
        ];
        sealer.replace(keys).unwrap();
        let again = clone.reseal(&sealed, "a").unwrap().unwrap();
        assert_eq!(again[2..5], *b"new");
        assert_eq!(clone.open(&again, "a").unwrap(), b"secret");
        assert!(clone.reseal(&again, "a").unwrap().is_none());
        assert!(clone.reseal(&sealed, "b").is_err());
    }

    #[test]
    fn a_sealed_value_cannot_be_moved_or_changed() {
        let sealer = sealer(&["k"]);
        let mut sealed = sealer.seal(b"secret", "namespaces/a");
        assert!(sealer.open(&sealed, "namespaces/b").is_err());
        *sealed.last_mut().unwrap() ^= 1;
        assert!(sealer.open(&sealed, "namespaces/a").is_err());
        for length in 0..sealed.len() {
            assert!(sealer.open(&sealed[..length], "namespaces/a").is_err());
        }
    }
}
