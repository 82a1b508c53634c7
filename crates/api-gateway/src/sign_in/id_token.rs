//! Verifies ID tokens (OpenID Connect Core 3.1.3.7), with ring as in TLS.

use jsonwebtoken::{
    Algorithm, DecodingKey, DecodingKeyKind, EncodingKey, Validation,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    decode, decode_header,
    errors::{Error, ErrorKind, Result as JwtResult},
    jwk::{Jwk, PublicKeyUse},
    signature::{Error as SignatureError, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde_json::{Map, Value};

/// How far the provider's clock may be from ours, in seconds.
const LEEWAY: u64 = 60;
/// Maximum length of a person's name.
const MAX_PERSON_CHARS: usize = 200;
/// Maximum length of a subject, as the standard has it.
const MAX_SUBJECT_CHARS: usize = 255;
/// The `@` of addresses, and characters that look like it.
const AT_SIGNS: [char; 3] = ['@', '\u{fe6b}', '\u{ff20}'];

/// The issuer, client and sign-in that a token must name.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Invalid {
    /// The provider may have new keys.
    #[error("the ID token is signed with an unknown key")]
    UnknownKey,
    #[error("the ID token is not valid")]
    Token(#[from] Error),
    #[error("the ID token has another `{0}`")]
    Claim(&'static str),
    /// Operators see and type it.
    #[error("the ID token has a `sub` that is empty, too long or not printable")]
    Subject,
}

impl Invalid {
    /// Returns true if the token may be signed with a key that the provider has added since its keys were read.
    pub(super) fn may_be_of_a_new_key(&self) -> bool {
        match self {
            Self::UnknownKey => true,
            Self::Token(error) => matches!(error.kind(), ErrorKind::InvalidSignature),
            Self::Claim(_) | Self::Subject => false,
        }
    }
}

/// Claims of a verified token.
#[derive(Debug)]
pub(super) struct Claims {
    /// Permanent identifier of the person at the provider. Names and addresses change, and some people can change theirs.
    pub(super) subject: String,
    all: Map<String, Value>,
}

/// Lets `jsonwebtoken` verify signatures. Call it before [`verify`].
pub(super) fn install() {
    static PROVIDER: CryptoProvider = CryptoProvider {
        signer_factory: refuse_to_sign,
        verifier_factory: verifier,
        key_utils: KeyUtils::new_unimplemented(),
    };
    // An error only means that it is already installed.
    let _ = PROVIDER.install_default();
}

/// Returns the claims of `token` if one of `keys` has signed it for `expected`, and it is not too old.
pub(super) fn verify(
    token: &str,
    keys: &[Jwk],
    expected: &Expected<'_>,
) -> Result<Claims, Invalid> {
    let header = decode_header(token)?;
    let key_id = header.kid.as_deref();
    let candidates = keys.iter().filter(|key| {
        let common = &key.common;
        let is_named = key_id.is_none() || common.key_id.as_deref() == key_id;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        is_named && signs
    });
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let mut refusal = Invalid::UnknownKey;
    for key in candidates {
        let key = DecodingKey::from_jwk(key);
        let key = key.ok().filter(|key| key.family() == header.alg.family());
        let Some(key) = key else {
            continue;
        };
        match decode::<Map<String, Value>>(token, &key, &validation) {
            Ok(token) => return check(token.claims, expected),
            // Without a key id, another key may fit.
            Err(error) => refusal = error.into(),
        }
    }
    Err(refusal)
}

/// Checks what is special to OpenID Connect.
fn check(claims: Map<String, Value>, expected: &Expected<'_>) -> Result<Claims, Invalid> {
    let text = |claim: &str| claims.get(claim).and_then(Value::as_str);
    let is = |claim: &str, value: &str| text(claim) == Some(value);
    // One issuer, not a list with it.
    if !is("iss", expected.issuer) {
        return Err(Invalid::Claim("iss"));
    }
    if !is("nonce", expected.nonce) {
        return Err(Invalid::Claim("nonce"));
    }
    let for_others = matches!(claims.get("aud"), Some(Value::Array(all)) if all.len() > 1);
    if (for_others || claims.contains_key("azp")) && !is("azp", expected.client_id) {
        return Err(Invalid::Claim("azp"));
    }
    let subject = text("sub").unwrap_or_default().to_owned();
    let length = subject.chars().count();
    if !(1..=MAX_SUBJECT_CHARS).contains(&length) || !subject.chars().all(is_printable) {
        return Err(Invalid::Subject);
    }
    Ok(Claims {
        subject,
        all: claims,
    })
}

impl Claims {
    /// Name of the person for lists and the audit log, where it stands between slashes.
    pub(super) fn person(&self) -> String {
        let is_verified = self.all.get("email_verified") == Some(&Value::Bool(true));
        let names = ["email", "preferred_username", "sub"].into_iter();
        let names = names.filter(|claim| *claim != "email" || is_verified);
        let texts = names.filter_map(|claim| {
            let text = self.all.get(claim)?.as_str()?;
            // People may choose their name. It must not look like a verified address.
            let poses = claim == "preferred_username" && text.contains(AT_SIGNS);
            (!poses).then_some(text)
        });
        let clean = |text: &str| {
            let shown = text.chars().filter(|c| is_printable(*c) && *c != '/');
            let shown: String = shown.take(MAX_PERSON_CHARS).collect();
            shown.trim().to_owned()
        };
        let mut names = texts.map(clean).filter(|name| !name.is_empty());
        names.next().unwrap_or_else(|| "unnamed".to_owned())
    }

    /// Groups of the person, in a list or alone.
    pub(super) fn groups(&self, claim: &str) -> Vec<&str> {
        match self.all.get(claim) {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns false for characters that are invisible or change how others are shown, such as those of direction.
fn is_printable(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    );
    !is_format && !c.is_control()
}

/// Refuses to sign: the gateway makes no tokens.
fn refuse_to_sign(_: &Algorithm, _: &EncodingKey) -> JwtResult<Box<dyn JwtSigner>> {
    Err(ErrorKind::UnsupportedAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> JwtResult<Box<dyn JwtVerifier>> {
    let (algorithm, key) = (*algorithm, key.clone());
    if key.family() != algorithm.family() || !is_public(algorithm) {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Signature { algorithm, key }))
}

/// Returns true for signatures with public keys. With a shared secret, everyone who knows it could sign.
fn is_public(algorithm: Algorithm) -> bool {
    rsa(algorithm).is_some() || elliptic(algorithm).is_some()
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn elliptic(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&ECDSA_P384_SHA384_FIXED),
        _ => None,
    }
}

struct Signature {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Signature {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Signature {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let verified = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => rsa(self.algorithm).map(|parameters| {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }),
            DecodingKeyKind::SecretOrDer(point) => elliptic(self.algorithm).map(|algorithm| {
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }),
        };
        match verified {
            Some(Ok(())) => Ok(()),
            _ => Err(SignatureError::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
    use ring::hmac;
    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'_> = Expected {
        issuer: "i",
        client_id: "c",
        nonce: "n",
    };

    /// The claims of a token with these next to the required ones.
    fn claims(given: Value) -> Result<Claims, Invalid> {
        let mut all = json!({"iss": "i", "aud": "c", "nonce": "n", "sub": "a/7"});
        let all = all.as_object_mut().unwrap();
        all.extend(given.as_object().unwrap().clone());
        check(all.clone(), &EXPECTED)
    }

    #[test]
    fn person_is_a_verified_address_or_a_name_without_slashes_and_invisible_characters() {
        for (given, person) in [
            (json!({"email": "a@x", "email_verified": true}), "a@x"),
            (json!({"email": "a@x", "email_verified": false}), "a7"),
            (json!({"email": "a@x", "email_verified": "true"}), "a7"),
            (json!({"email": "a@x"}), "a7"),
            (
                json!({"email": "a@x", "preferred_username": " ann\n"}),
                "ann",
            ),
            (
                json!({"preferred_username": "ann/sessions/\u{202e}x\u{200b}"}),
                "annsessionsx",
            ),
            (json!({"preferred_username": "\u{2067} /"}), "a7"),
            (json!({"preferred_username": "boss@x"}), "a7"),
            (json!({"preferred_username": "boss\u{ff20}x"}), "a7"),
            (
                json!({"email": "a@x", "email_verified": true, "preferred_username": "boss@x"}),
                "a@x",
            ),
            (json!({"sub": "/"}), "unnamed"),
        ] {
            assert_eq!(claims(given.clone()).unwrap().person(), person, "{given}");
        }
        let long = json!({"preferred_username": "x".repeat(201)});
        assert_eq!(claims(long).unwrap().person().len(), MAX_PERSON_CHARS);
    }

    #[test]
    fn subject_is_taken_as_it_is_or_refused() {
        assert_eq!(claims(json!({})).unwrap().subject, "a/7");
        for sub in [
            json!(""),
            json!(7),
            json!("7\n"),
            json!("\u{202e}7"),
            json!("7".repeat(256)),
        ] {
            let refused = claims(json!({"sub": sub})).unwrap_err();
            assert!(matches!(refused, Invalid::Subject), "{refused}");
        }
    }

    #[test]
    fn token_signed_with_a_shared_secret_is_refused() {
        install();
        let secret = b"a secret among the provider's keys";
        let encoded = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let part = |value: Value| encoded(value.to_string().as_bytes());
        let header = part(json!({"alg": "HS256", "kid": "k"}));
        let claims = json!({"iss": "i", "aud": "c", "nonce": "n", "sub": "7", "exp": u32::MAX});
        let message = format!("{header}.{}", part(claims));
        let signing = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let signature = hmac::sign(&signing, message.as_bytes());
        let token = format!("{message}.{}", encoded(signature.as_ref()));
        let key = json!({"kty": "oct", "kid": "k", "k": encoded(secret)});
        let key: Jwk = serde_json::from_value(key).unwrap();
        let refused = verify(&token, &[key], &EXPECTED).unwrap_err();
        let Invalid::Token(error) = refused else {
            panic!("{refused}");
        };
        assert!(
            matches!(error.kind(), ErrorKind::InvalidAlgorithm),
            "{error}"
        );
    }
}
