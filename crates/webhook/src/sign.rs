//! Signatures according to Standard Webhooks: <https://github.com/standard-webhooks/standard-webhooks>.
//!
//! `webhook-id` is the delivery's id, the same in each attempt; `webhook-timestamp` the time of the attempt in
//! seconds; `webhook-signature` has one `v1,` signature for each secret, so that a receiver may use either
//! while secrets rotate.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{Id, Timestamp, connection::SigningSecret};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// Returns the headers of the signature; empty without a secret.
pub fn headers(
    secrets: &[SigningSecret],
    id: Id,
    time: Timestamp,
    body: &[u8],
) -> Vec<(String, String)> {
    if secrets.is_empty() {
        return Vec::new();
    }
    let (id, time) = (id.to_string(), (time.micros() / 1_000_000).to_string());
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| signature(secret.key(), &id, &time, body))
        .collect();
    vec![
        ("webhook-id".to_owned(), id),
        ("webhook-timestamp".to_owned(), time),
        ("webhook-signature".to_owned(), signatures.join(" ")),
    ]
}

fn signature(key: &[u8], id: &str, time: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in [id.as_bytes(), b".", time.as_bytes(), b".", body] {
        mac.update(part);
    }
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use domain::{Id, Timestamp};

    use super::{headers, signature};

    /// The example in the test suites of the standard's libraries.
    #[test]
    fn known_signature_is_reproduced() {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let made = signature(&key, id, "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(made, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn each_secret_adds_a_signature() {
        let secrets = [
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        ]
        .map(|text| text.parse().unwrap());
        let made = headers(&secrets, Id::generate(), Timestamp::now(), b"{}");
        let (name, value) = &made[2];
        assert_eq!(
            (name.as_str(), value.split(' ').count()),
            ("webhook-signature", 2)
        );
        assert!(headers(&[], Id::generate(), Timestamp::now(), b"{}").is_empty());
    }
}
