//! A provider of OpenID Connect that signs what a test wants.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use domain::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use test_support::{Answer, Request, TestServer};
use url::{Url, form_urlencoded};

pub(crate) const CLIENT_ID: &str = "earshot";
pub(crate) const CLIENT_SECRET: &str = "hush: +%";

pub(crate) struct Provider {
    server: TestServer,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    issuer: OnceLock<String>,
    /// The last one signs.
    keys: Mutex<Vec<(String, EcdsaKey)>>,
    /// Codes that were not used yet, with nonce and challenge.
    codes: Mutex<HashMap<String, (String, String)>>,
    /// Claims that replace those of Jane; `null` removes one.
    claims: Mutex<Value>,
    /// Header of tokens; `None` for the right one.
    header: Mutex<Option<Value>>,
    /// Paths that answer another status.
    statuses: Mutex<HashMap<&'static str, u16>>,
}

struct EcdsaKey(EcdsaKeyPair);

impl EcdsaKey {
    fn generate() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        let server = TestServer::start(move |_, request| serving.answer(request)).await;
        shared.issuer.set(server.url("")).unwrap();
        let provider = Self { server, shared };
        provider.rotate("one");
        provider
    }

    pub(crate) fn issuer(&self) -> String {
        self.server.url("")
    }

    /// Signs with a new key from now on.
    pub(crate) fn rotate(&self, id: &str) {
        let mut keys = self.shared.keys.lock().unwrap();
        keys.push((id.to_owned(), EcdsaKey::generate()));
    }

    /// Replaces claims of the next tokens.
    pub(crate) fn claim(&self, claims: Value) {
        *self.shared.claims.lock().unwrap() = claims;
    }

    /// Replaces the header of the next tokens.
    pub(crate) fn head(&self, header: Value) {
        *self.shared.header.lock().unwrap() = Some(header);
    }

    /// Answers `path` with this status; with 200 as usual.
    pub(crate) fn fail(&self, path: &'static str, status: u16) {
        let mut statuses = self.shared.statuses.lock().unwrap();
        statuses.insert(path, status);
    }

    /// Signs Jane in, as a browser does at `url`. Returns the query of the redirect back.
    pub(crate) fn authorize(&self, url: &str) -> String {
        let url = Url::parse(url).unwrap();
        assert_eq!(url.path(), "/authorize");
        let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!(query["response_type"], "code");
        assert_eq!(query["client_id"], CLIENT_ID);
        assert_eq!(query["code_challenge_method"], "S256");
        assert_eq!(query["scope"], "openid email");
        let mut codes = self.shared.codes.lock().unwrap();
        let code = format!("code-{}", domain::Id::generate());
        let secrets = (query["nonce"].clone(), query["code_challenge"].clone());
        codes.insert(code.clone(), secrets);
        let issuer = self.issuer();
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs([
                ("code", &code),
                ("state", &query["state"]),
                ("iss", &issuer),
            ])
            .finish()
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        let status = self.statuses.lock().unwrap().get(&*request.path).copied();
        if let Some(status) = status
            && status != 200
        {
            return Answer::Status(status);
        }
        let issuer = self.issuer.get().unwrap();
        match request.path.as_str() {
            "/.well-known/openid-configuration" => json_answer(
                200,
                &json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "jwks_uri": format!("{issuer}/keys"),
                    "authorization_response_iss_parameter_supported": true,
                }),
            ),
            "/keys" => json_answer(200, &json!({"keys": self.public_keys()})),
            "/token" => self.token(request),
            _ => Answer::Status(404),
        }
    }

    fn public_keys(&self) -> Vec<Value> {
        let keys = self.keys.lock().unwrap();
        let known = keys.iter().map(|(id, EcdsaKey(key))| {
            let point = &key.public_key().as_ref()[1..];
            let (x, y) = point.split_at(32);
            let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
            json!({"kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "x": text(x), "y": text(y)})
        });
        // Keys of other kinds stand next to it.
        let other = json!({"kty": "new", "kid": "other"});
        known.chain([other]).collect()
    }

    fn token(&self, request: &Request) -> Answer {
        let form: HashMap<_, _> = form_urlencoded::parse(&request.body).into_owned().collect();
        let encoded =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", encoded(CLIENT_ID), encoded(CLIENT_SECRET));
        let basic = format!("Basic {}", BASE64_STANDARD.encode(pair));
        assert_eq!(request.header("authorization"), Some(&*basic));
        assert_eq!(form["grant_type"], "authorization_code");
        let secrets = self.codes.lock().unwrap().remove(&form["code"]);
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&form["code_verifier"]));
        let Some((nonce, _)) = secrets.filter(|(_, wanted)| *wanted == challenge) else {
            return json_answer(400, &json!({"error": "invalid_grant"}));
        };
        let token = self.sign(&self.claims_of_jane(&nonce));
        let tokens = json!({"access_token": "a", "token_type": "Bearer", "id_token": token});
        json_answer(200, &tokens)
    }

    fn claims_of_jane(&self, nonce: &str) -> Value {
        let now = Timestamp::now().to_chrono().timestamp();
        let mut claims = json!({
            "iss": self.issuer.get().unwrap(), "aud": CLIENT_ID, "sub": "7", "nonce": nonce,
            "iat": now, "exp": now + 300, "groups": ["all", "staff"],
            "email": "jane@example.com", "email_verified": true,
        });
        let changes = self.claims.lock().unwrap();
        for (name, value) in changes.as_object().into_iter().flatten() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        claims
    }

    fn sign(&self, claims: &Value) -> String {
        let keys = self.keys.lock().unwrap();
        let (id, EcdsaKey(key)) = keys.last().unwrap();
        let usual = json!({"alg": "ES256", "typ": "JWT", "kid": id});
        let header = self.header.lock().unwrap().clone().unwrap_or(usual);
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&header), part(claims));
        let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature.as_ref());
        format!("{message}.{signature}")
    }
}

fn json_answer(status: u16, body: &Value) -> Answer {
    Answer::Full {
        status,
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.to_string().into_bytes(),
    }
}
