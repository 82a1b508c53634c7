//! `/console/sign-in`: sign-in to the console by OpenID Connect, with an authorization code and PKCE.
//!
//! 1. `begin` stores a sign-in, gives the browser a cookie, and sends it to the provider.
//! 2. The provider sends it back to `callback` with a code. The gateway exchanges the code for an ID token, and stores
//!    what the person's groups may do.
//! 3. The console asks `token` for its key, once, and holds it like one that was typed in. `end` revokes it.
//!
//! Cookie, `state`, nonce and verifier are of one sign-in. So a code that another browser got is refused, and a token is
//! never part of an address. A failure sends the browser back to the console with a reason. Nothing tries again until the person
//! does. The steps are in the database ([`store::sessions`]), so each may be taken by another replica.

pub(crate) mod client;
mod id_token;
mod provider;

use std::time::{Duration, Instant};

use actix_web::{
    HttpMessage as _, HttpRequest, HttpResponse,
    http::header::{LOCATION, ORIGIN, SET_COOKIE},
    web::Data,
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use domain::{
    audit::{Action, Actor, ActorType, Entry},
    error_chain,
    key::ApiKey,
};
use runtime::config::Grant;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use store::{
    AsyncConnection as _, AsyncPgConnection, QueryError, QueryResult, audit,
    sessions::{self, GrantOutcome, Session, SignIn},
};
use url::{Url, form_urlencoded};

use crate::{
    ApiError,
    answer::{Deleted, Found},
    authenticate::{bearer_of, guesses},
    rates,
    request_id::RequestId,
    state::AppState,
};
use client::SignIns;

/// Why a person is not signed in.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the provider cannot be used: {0}")]
    Provider(String),
    #[error("the sign-in is too old, was used before or stopped, or was begun by another browser")]
    Expired,
    #[error("the provider refused: {0}")]
    Refused(String),
    #[error("{0}")]
    Invalid(String),
    #[error("none of the person's {groups} groups is in gateway.oidc.grants")]
    NoGrant { groups: usize },
    #[error("the account `{0}` of gateway.oidc.grants does not exist")]
    NoAccount(String),
    #[error("too many requests from one address")]
    TooMany,
    #[error(transparent)]
    Gateway(#[from] ApiError),
}

impl Failure {
    /// The reason that the console explains.
    fn reason(&self) -> &'static str {
        match self {
            Self::Provider(_) | Self::Gateway(_) => "unavailable",
            Self::Expired => "expired",
            Self::Refused(_) => "refused",
            Self::Invalid(_) => "invalid",
            Self::NoGrant { .. } | Self::NoAccount(_) => "not-allowed",
            Self::TooMany => "too-many",
        }
    }

    /// Only what an operator can mend is a warning: anyone can cause the others.
    fn log(&self) {
        let what = error_chain(self);
        match self {
            Self::Provider(_) | Self::Invalid(_) | Self::NoAccount(_) | Self::Gateway(_) => {
                tracing::warn!("sign-in failed: {what}");
            }
            Self::Expired | Self::Refused(_) | Self::NoGrant { .. } | Self::TooMany => {
                tracing::info!("sign-in failed: {what}");
            }
        }
    }
}

#[derive(Serialize)]
pub(crate) struct Description {
    /// Name of the provider; absent if people cannot sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
}

/// `GET /console/sign-in`
pub(crate) async fn describe(state: Data<AppState>) -> Result<Found<Description>, ApiError> {
    if !state.serves_console {
        return Err(ApiError::NotFound("path"));
    }
    let sign_ins = state.sign_ins.as_ref();
    Ok(Found(Description {
        provider: sign_ins.map(|sign_ins| sign_ins.settings.name.clone()),
    }))
}

/// `GET /console/sign-in/begin`
pub(crate) async fn begin(
    state: Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let sign_ins = enabled(&state)?;
    Ok(match start(sign_ins, &state, &request).await {
        Ok((provider, browser)) => HttpResponse::SeeOther()
            .insert_header((LOCATION, provider.as_str()))
            .insert_header((SET_COOKIE, sign_ins.cookie(&browser)))
            .finish(),
        Err(failure) => to_console(Err(failure)),
    })
}

/// `GET /console/sign-in/callback`
pub(crate) async fn callback(
    state: Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let sign_ins = enabled(&state)?;
    Ok(to_console(finish(sign_ins, &state, &request).await))
}

/// `POST /console/sign-in/token`
pub(crate) async fn token(
    state: Data<AppState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    #[derive(Serialize)]
    struct Token {
        token: String,
    }
    let sign_ins = enabled(&state)?;
    // Browsers send the header with each POST.
    let origin = request.headers().get(ORIGIN);
    if origin.is_none_or(|origin| origin.as_bytes() != sign_ins.origin.as_bytes()) {
        return Err(ApiError::Forbidden("not permitted from this origin"));
    }
    let browser = sign_ins.browser(&request);
    let browser = browser.ok_or(ApiError::Unauthenticated)?;
    throttle(&state, &request).map_err(rates::too_many_failures)?;
    let key = ApiKey::generate();
    let address = state.guesses.origin(&request).to_string();
    let request_id = request.extensions().get::<RequestId>().cloned();
    let session = {
        let mut conn = state.database.connection().await?;
        let lasts = sign_ins.settings.session_length;
        let (address, request_id) = (Some(&*address), request_id.as_ref().map(|id| &*id.0));
        open(&mut conn, &hash(&browser), &key, lasts, address, request_id).await?
    };
    let session = session.ok_or(ApiError::Unauthenticated)?;
    tracing::info!(api_key.id = %key.id, account.id = %session.account, "signed in");
    Ok(HttpResponse::Ok()
        .insert_header((SET_COOKIE, sign_ins.cookie("")))
        .json(Token {
            token: key.expose(),
        }))
}

/// `POST /console/sign-in/end`
///
/// Costs no points, so that a session can be ended when its rate limit is used up.
pub(crate) async fn end(request: HttpRequest) -> Result<Deleted, ApiError> {
    let caller = bearer_of(&request).await?;
    let Some(person) = caller.key.person.as_deref() else {
        return Err(ApiError::Forbidden("api key is not a session"));
    };
    let id = caller.key.id;
    let entry = Entry::of_account(Action::Revoke, sessions::name(person, id));
    let mut conn = caller.connection().await?;
    let conn: &mut AsyncPgConnection = &mut conn;
    conn.transaction::<_, QueryError, _>(async |conn| {
        if sessions::end(conn, id).await? {
            caller.record(conn, &entry).await?;
        }
        Ok(())
    })
    .await?;
    Ok(Deleted)
}

/// Stores a new sign-in. Returns where the browser has to go, and what it has to remember.
async fn start(
    sign_ins: &SignIns,
    state: &AppState,
    request: &HttpRequest,
) -> Result<(Url, String), Failure> {
    throttle(state, request).map_err(|_next_minute| Failure::TooMany)?;
    let document = sign_ins.provider.document().await?;
    let [browser, sent_state, nonce, verifier] = [(); 4].map(|()| random());
    let sign_in = SignIn {
        state_hash: hash(&sent_state),
        browser_hash: hash(&browser),
    };
    let secrets = format!("{nonce} {verifier}");
    let sealed = state.sealer.seal(secrets.as_bytes(), &bound_to(&sign_in));
    let origin = guesses::network(state.guesses.origin(request)).to_string();
    {
        let mut conn = state.database.connection().await?;
        let begun = sessions::begin(&mut conn, &sign_in, &origin, &sealed).await;
        begun.map_err(ApiError::from)?;
    }
    let challenge = BASE64_URL_SAFE_NO_PAD.encode(hash(&verifier));
    let mut url = document.metadata.authorization_endpoint.clone();
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("client_id", &sign_ins.settings.client_id)
        .append_pair("redirect_uri", &sign_ins.redirect_uri)
        .append_pair("scope", &sign_ins.settings.scopes.join(" "))
        .append_pair("state", &sent_state)
        .append_pair("nonce", &nonce)
        .append_pair("code_challenge", &challenge)
        .append_pair("code_challenge_method", "S256");
    Ok((url, browser))
}

/// Takes the person back from the provider, and stores what they may do.
async fn finish(
    sign_ins: &SignIns,
    state: &AppState,
    request: &HttpRequest,
) -> Result<(), Failure> {
    let query = form_urlencoded::parse(request.query_string().as_bytes());
    let query: Vec<(String, String)> = query.into_owned().collect();
    let given = |wanted: &str| {
        let mut pairs = query.iter();
        let found = pairs.find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    };
    let browser = sign_ins.browser(request);
    let (Some(sent_state), Some(browser)) = (given("state"), browser) else {
        return Err(Failure::Expired);
    };
    let sign_in = SignIn {
        state_hash: hash(sent_state),
        browser_hash: hash(&browser),
    };
    throttle(state, request).map_err(|_next_minute| Failure::TooMany)?;
    let sealed = {
        let mut conn = state.database.connection().await?;
        let taken = sessions::take(&mut conn, &sign_in).await;
        taken.map_err(ApiError::from)?.ok_or(Failure::Expired)?
    };
    if let Some(error) = given("error") {
        return Err(Failure::Refused(provider::plain(error)));
    }
    let document = sign_ins.provider.document().await?;
    // An answer of another provider may carry a code that is not for this one.
    let requires_issuer = document
        .metadata
        .authorization_response_iss_parameter_supported;
    let is_ours = match given("iss") {
        Some(issuer) => issuer == sign_ins.settings.issuer,
        None => !requires_issuer,
    };
    if !is_ours {
        let what = "the answer is of another issuer".to_owned();
        return Err(Failure::Invalid(what));
    }
    let code = given("code").filter(|code| !code.is_empty());
    let code = code.ok_or_else(|| Failure::Invalid("the answer has no code".to_owned()))?;
    let secrets = state.sealer.open(&sealed, &bound_to(&sign_in));
    // The key that sealed it is gone.
    let secrets = secrets.map_err(|error| Failure::Invalid(error.to_string()))?;
    let secrets = String::from_utf8_lossy(&secrets);
    let (nonce, verifier) = secrets.split_once(' ').ok_or(Failure::Expired)?;
    let claims = sign_ins
        .provider
        .exchange(&document, code, verifier, &sign_ins.redirect_uri, nonce)
        .await?;
    let groups = claims.groups(&sign_ins.settings.groups_claim);
    let grant = first_of(&sign_ins.settings.grants, &groups);
    let grant = grant.ok_or(Failure::NoGrant {
        groups: groups.len(),
    })?;
    let granted = sessions::Grant {
        account: &grant.account,
        role: grant.role,
        person: &claims.person(),
        subject: &claims.subject,
    };
    let mut conn = state.database.connection().await?;
    let outcome = sessions::grant(&mut conn, &sign_in, granted).await;
    match outcome.map_err(ApiError::from)? {
        GrantOutcome::Done => Ok(()),
        GrantOutcome::NoAccount => Err(Failure::NoAccount(grant.account.clone())),
        GrantOutcome::Gone => Err(Failure::Expired),
    }
}

/// Opens the session of a browser, and records it in the account's audit log.
async fn open(
    conn: &mut AsyncPgConnection,
    browser_hash: &[u8; 32],
    key: &ApiKey,
    lasts: Duration,
    client_address: Option<&str>,
    request_id: Option<&str>,
) -> QueryResult<Option<Session>> {
    conn.transaction::<_, QueryError, _>(async |conn| {
        let session = sessions::open(conn, browser_hash, key, lasts).await?;
        if let Some(session) = &session {
            let actor = Actor {
                r#type: ActorType::ApiKey,
                key: Some(key.id),
            };
            let origin = audit::Origin {
                account: session.account,
                actor: &actor,
                client_address,
                request_id,
            };
            let name = sessions::name(&session.person, key.id);
            let entry = Entry::of_account(Action::Create, name);
            audit::record(conn, origin, &entry).await?;
        }
        Ok(session)
    })
    .await
}

/// Counts a step that uses the database before anyone is known. Fails with the time until the next minute.
fn throttle(state: &AppState, request: &HttpRequest) -> Result<(), Duration> {
    let address = guesses::network(state.guesses.origin(request));
    state.sign_in_rates.take(address, Instant::now())
}

fn enabled(state: &AppState) -> Result<&SignIns, ApiError> {
    let sign_ins = state.sign_ins.as_ref().filter(|_| state.serves_console);
    sign_ins.ok_or(ApiError::NotFound("path"))
}

/// Sends the browser back to the console. The address is relative, so it keeps a path prefix.
fn to_console(outcome: Result<(), Failure>) -> HttpResponse {
    let query = match &outcome {
        Ok(()) => "done=true".to_owned(),
        Err(failure) => {
            failure.log();
            format!("failed={}", failure.reason())
        }
    };
    HttpResponse::SeeOther()
        .insert_header((LOCATION, format!("../#/sign-in?{query}")))
        .finish()
}

fn first_of<'a>(grants: &'a [Grant], groups: &[&str]) -> Option<&'a Grant> {
    let mut grants = grants.iter();
    grants.find(|grant| groups.contains(&grant.group.as_str()))
}

/// 256 random bits as text.
fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

/// Binds sealed secrets to their row.
fn bound_to(sign_in: &SignIn) -> String {
    format!("signIns/{}", hex::encode(sign_in.state_hash))
}

#[cfg(test)]
mod tests {
    use domain::key::Role;
    use runtime::config::Grant;

    use super::first_of;

    #[test]
    fn first_grant_of_a_persons_groups_counts() {
        let grant = |group: &str, role| Grant {
            group: group.to_owned(),
            account: "acme".to_owned(),
            role,
        };
        let grants = [grant("admins", Role::Owner), grant("staff", Role::Viewer)];
        let role = |groups: &[&str]| first_of(&grants, groups).map(|grant| grant.role);
        assert_eq!(role(&["staff", "admins"]), Some(Role::Owner));
        assert_eq!(role(&["staff"]), Some(Role::Viewer));
        assert_eq!(role(&["Staff", "admin", ""]), None);
        assert_eq!(role(&[]), None);
    }
}
