//! API keys: `esk_<id>_<secret>`, and their permissions.
//!
//! The secret is 32 bytes in URL-safe base64, 43 characters; only its SHA-256 is stored. A hash without salt or
//! work factor is enough for a secret that no one can guess: 27 of the bytes, and a few bits more, are random.
//!
//! The last six characters are a checksum of the text before them: its CRC-32 (IEEE 802.3), in URL-safe base64
//! of its four bytes. With it, scanners for leaked secrets recognise real keys. It is not checked here, because
//! older keys have none.

use std::{fmt, str::FromStr};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Id;

/// Permissions of a key within its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Role {
    /// Everything, including creating and deleting Namespaces.
    Owner,
    /// Everything inside Namespaces.
    Editor,
    /// Only reads.
    Viewer,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Editor => "EDITOR",
            Self::Viewer => "VIEWER",
        }
    }

    pub fn may_write(self) -> bool {
        match self {
            Self::Owner | Self::Editor => true,
            Self::Viewer => false,
        }
    }

    pub fn may_audit(self) -> bool {
        match self {
            Self::Owner => true,
            Self::Editor | Self::Viewer => false,
        }
    }

    pub fn may_manage_namespaces(self) -> bool {
        match self {
            Self::Owner => true,
            Self::Editor | Self::Viewer => false,
        }
    }
}

/// The text is not a role.
#[derive(Debug, thiserror::Error)]
#[error("role must be OWNER, EDITOR or VIEWER")]
pub struct ParseRoleError;

impl FromStr for Role {
    type Err = ParseRoleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Owner, Self::Editor, Self::Viewer]
            .into_iter()
            .find(|role| role.as_str().eq_ignore_ascii_case(text))
            .ok_or(ParseRoleError)
    }
}

/// The characters of the checksum at the end of a key.
const CHECKSUM_CHARS: usize = 6;

/// A whole key with its secret. Neither `Debug` nor `Display` prints it, and only [`ApiKey::matches`] compares
/// it.
#[derive(Clone)]
pub struct ApiKey {
    pub id: Id,
    secret: [u8; 32],
}

impl ApiKey {
    pub fn generate() -> Self {
        Self::with_checksum(Id::generate(), rand::random())
    }

    /// The key with this id and this secret, whose last bytes are replaced by the checksum.
    fn with_checksum(id: Id, secret: [u8; 32]) -> Self {
        let text = Self { id, secret }.expose();
        let body = &text[..text.len() - CHECKSUM_CHARS];
        let checksum =
            BASE64_URL_SAFE_NO_PAD.encode(crc32fast::hash(body.as_bytes()).to_be_bytes());
        format!("{body}{checksum}")
            .parse()
            .expect("the bits that a secret leaves unused are unused by a checksum too")
    }

    /// The key with this id and a secret that was derived elsewhere.
    pub fn from_parts(id: Id, secret: [u8; 32]) -> Self {
        Self { id, secret }
    }

    /// The text that the bearer sends.
    pub fn expose(&self) -> String {
        format!(
            "esk_{}_{}",
            self.id,
            BASE64_URL_SAFE_NO_PAD.encode(self.secret)
        )
    }

    pub fn secret_hash(&self) -> [u8; 32] {
        Sha256::digest(self.secret).into()
    }

    /// Compares in constant time.
    pub fn matches(&self, secret_hash: &[u8]) -> bool {
        self.secret_hash().ct_eq(secret_hash).into()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({})", self.id)
    }
}

/// The text is not an API key; the error does not repeat it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an API key of the form `esk_<id>_<secret>`")]
pub struct ParseApiKeyError;

impl FromStr for ApiKey {
    type Err = ParseApiKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (id, secret) = text
            .strip_prefix("esk_")
            .and_then(|rest| rest.split_once('_'))
            .ok_or(ParseApiKeyError)?;
        let id = id.parse().ok().ok_or(ParseApiKeyError)?;
        let secret = BASE64_URL_SAFE_NO_PAD
            .decode(secret)
            .ok()
            .and_then(|bytes| bytes.try_into().ok());
        Ok(Self {
            id,
            secret: secret.ok_or(ParseApiKeyError)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

    use super::ApiKey;
    use crate::Id;

    #[test]
    fn keys_end_with_a_checksum() {
        // The check value in the catalogue of CRCs.
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
        for _ in 0..100 {
            let text = ApiKey::generate().expose();
            let (body, checksum) = text.split_at(text.len() - 6);
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(checksum).unwrap();
            assert_eq!(bytes, crc32fast::hash(body.as_bytes()).to_be_bytes());
        }
    }

    #[test]
    fn keys_without_a_checksum_stay_valid() {
        let key = ApiKey::from_parts(Id::generate(), [7; 32]);
        let parsed: ApiKey = key.expose().parse().unwrap();
        assert!(parsed.matches(&key.secret_hash()));
    }

    #[test]
    fn key_parses_back_and_matches_only_its_own_hash() {
        let key = ApiKey::generate();
        let text = key.expose();
        assert_eq!(text.len(), "esk_".len() + 26 + 1 + 43);
        assert!(text.parse::<ApiKey>().unwrap().matches(&key.secret_hash()));
        assert!(!ApiKey::generate().matches(&key.secret_hash()));
    }

    #[test]
    fn debug_and_errors_do_not_reveal_the_secret() {
        let key = ApiKey::generate();
        let secret = key.expose()[31..].to_owned();
        assert!(!format!("{key:?}").contains(&secret));
        let error = format!("{}!", key.expose()).parse::<ApiKey>().unwrap_err();
        assert!(!error.to_string().contains(&secret));
    }
}
