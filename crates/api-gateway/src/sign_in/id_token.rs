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
}

impl Invalid {
    /// Returns true if the token may be signed with a key that the provider has added since its keys were read.
    pub(super) fn may_be_of_a_new_key(&self) -> bool {
        match self {
            Self::UnknownKey => true,
            Self::Token(error) => matches!(error.kind(), ErrorKind::InvalidSignature),
            Self::Claim(_) => false,
        }
    }
}

/// Claims of a verified token.
#[derive(Debug)]
pub(super) struct Claims(Map<String, Value>);

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
            Ok(token) => return check(token.claims, expected).map(Claims),
            // Without a key id, another key may fit.
            Err(error) => refusal = error.into(),
        }
    }
    Err(refusal)
}

/// Checks what is special to OpenID Connect.
fn check(
    claims: Map<String, Value>,
    expected: &Expected<'_>,
) -> Result<Map<String, Value>, Invalid> {
    let is = |claim: &str, value: &str| claims.get(claim).and_then(Value::as_str) == Some(value);
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
    Ok(claims)
}

impl Claims {
    /// Name of the person for lists and the audit log.
    pub(super) fn person(&self) -> String {
        let is_unverified = self.0.get("email_verified") == Some(&Value::Bool(false));
        let names = ["email", "preferred_username", "sub"].into_iter();
        let names = names.filter(|claim| *claim != "email" || !is_unverified);
        let texts = names.filter_map(|claim| self.0.get(claim)?.as_str());
        let clean = |text: &str| {
            let shown = text.chars().filter(|c| !c.is_control());
            shown.take(MAX_PERSON_CHARS).collect::<String>()
        };
        let mut names = texts.map(clean).filter(|name| !name.trim().is_empty());
        names.next().unwrap_or_else(|| "unnamed".to_owned())
    }

    /// Groups of the person, in a list or alone.
    pub(super) fn groups(&self, claim: &str) -> Vec<&str> {
        match self.0.get(claim) {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }
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
