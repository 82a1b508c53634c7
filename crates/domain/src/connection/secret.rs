//! Secrets that sign deliveries, in the format of Standard Webhooks: `whsec_` and base64.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};

const PREFIX: &str = "whsec_";
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// One signing secret. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret {
    text: String,
    key: Vec<u8>,
}

/// The text is not a signing secret. The error does not repeat it: it may be most of a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret must be `{PREFIX}` and base64 of 24 to 64 bytes")]
pub struct ParseSecretError;

impl SigningSecret {
    /// The bytes of the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The secret as the customer wrote it.
    pub fn expose(&self) -> &str {
        &self.text
    }
}

impl FromStr for SigningSecret {
    type Err = ParseSecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix(PREFIX)
            .and_then(|encoded| STANDARD.decode(encoded).ok())
            .filter(|key| KEY_BYTES.contains(&key.len()))
            .map(|key| Self {
                text: text.to_owned(),
                key,
            })
            .ok_or(ParseSecretError)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret")
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};

    use super::SigningSecret;

    #[test]
    fn the_form_and_length_of_secrets_are_checked() {
        let secret = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for bytes in [24, 32, 64] {
            let parsed: SigningSecret = secret(bytes).parse().unwrap();
            assert_eq!(parsed.key(), vec![7; bytes]);
            assert_eq!(parsed.expose(), secret(bytes));
        }
        for wrong in [
            secret(23),
            secret(65),
            STANDARD.encode([7; 32]),
            "whsec_".to_owned(),
            "whsec_????".to_owned(),
            String::new(),
        ] {
            assert!(wrong.parse::<SigningSecret>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn signing_secret_is_not_in_debug_output() {
        let text = format!("whsec_{}", STANDARD.encode([7; 32]));
        let secret: SigningSecret = text.parse().unwrap();
        assert_eq!(format!("{secret:?}"), "SigningSecret");
    }
}
