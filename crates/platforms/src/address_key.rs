//! Hashes of the feed addresses that customers give, for ids that receivers see.

use std::fmt;

use hmac::{Hmac, Mac};
use secrecy::{ExposeSecret, SecretBox};
use sha2::Sha256;

/// The installation's key for hashing the addresses of feeds. An address may contain a token, so an id must not
/// reveal the address, not even to someone who tries candidates.
pub struct AddressKey(SecretBox<[u8; 32]>);

impl AddressKey {
    pub fn new(key: [u8; 32]) -> Self {
        Self(SecretBox::new(Box::new(key)))
    }

    /// A random key, for processes that create no posts.
    pub fn random() -> Self {
        Self::new(rand::random())
    }

    pub(crate) fn hash(&self, address: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret())
            .expect("HMAC takes keys of any length");
        mac.update(address.as_bytes());
        hex::encode(&mac.finalize().into_bytes()[..16])
    }
}

impl Clone for AddressKey {
    fn clone(&self) -> Self {
        Self::new(*self.0.expose_secret())
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddressKey([REDACTED])")
    }
}

#[cfg(test)]
mod tests {
    use super::AddressKey;

    #[test]
    fn hash_depends_on_key_and_address_and_shows_neither() {
        let (one, other) = (AddressKey::new([1; 32]), AddressKey::new([2; 32]));
        let address = "https://blog.example/feed?token=canary";
        assert_eq!(one.hash(address), one.clone().hash(address));
        assert_ne!(one.hash(address), other.hash(address));
        assert_ne!(one.hash(address), one.hash("https://blog.example/feed"));
        assert_eq!(one.hash(address).len(), 32);
        assert_eq!(format!("{one:?}"), "AddressKey([REDACTED])");
    }
}
