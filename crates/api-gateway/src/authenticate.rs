//! Authentication: the key of a request, checked before anything else.
//!
//! A key that was found is believed for [`BELIEVED_FOR`], so that most requests cost no look-up, and
//! revocation works within five seconds on every replica. What was not found is not remembered: a new
//! key works at once. Who tries keys that do not work is slowed down ([`guesses`]).
//!
//! Time tells nothing about keys: a key is found by its id, which is no secret, and the hash of its secret is
//! compared in constant time, also where there is no such key. All that fail get one answer.

pub(crate) mod guesses;

use std::{
    collections::HashMap,
    fmt::Display,
    net::IpAddr,
    ops::DerefMut,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use actix_web::{
    Error, FromRequest, HttpMessage, HttpRequest, ResponseError,
    body::{BoxBody, EitherBody, MessageBody},
    dev::{Payload, ServiceRequest, ServiceResponse},
    http::{
        StatusCode,
        header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE},
    },
    middleware::Next,
    web,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use domain::{
    Id, Timestamp,
    audit::{Action, Actor, ActorType, Entry},
    key::ApiKey,
};
use futures::future::{Ready, ready};
use store::{
    AsyncPgConnection, QueryResult, audit,
    keys::{self, KeyRecord},
    namespaces,
    rates::Payer,
};

use crate::{
    ApiError,
    observe::RequestId,
    rates::{self, Meter, Standing},
    state::AppState,
    test_mode,
};

const BELIEVED_FOR: Duration = Duration::from_secs(3);
/// For so long, a key that was found counts as one that has worked here.
const KNOWN_FOR: Duration = Duration::from_mins(15);
/// When the cache holds this many, those that are no longer known go, and then those no longer believed.
const SWEEP_AT: usize = 4_096;

/// The bearer of a valid key.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) key: Arc<KeyRecord>,
    /// True if what the request does is to be taken back.
    pub(crate) test_mode: bool,
    /// Address of the client, behind trusted proxies.
    address: IpAddr,
    request_id: Option<RequestId>,
    /// How the key stands, where it was charged for more than the request.
    charged: Arc<OnceLock<Standing>>,
    state: web::Data<AppState>,
}

impl Caller {
    /// Writes an entry of the audit log. Call it in the transaction of the change.
    pub(crate) async fn record(
        &self,
        conn: &mut AsyncPgConnection,
        entry: &Entry,
    ) -> QueryResult<()> {
        let actor = Actor {
            r#type: ActorType::ApiKey,
            key: Some(self.key.id),
        };
        let origin = audit::Origin {
            account: self.key.account,
            actor: &actor,
            client_address: Some(&self.address.to_string()),
            request_id: self.request_id.as_ref().map(|id| &*id.0),
        };
        audit::record(conn, origin, entry).await
    }

    /// Records that a response contains secrets of Connections. Call it before the response is sent, and after
    /// everything that can refuse the request.
    pub(crate) async fn reads_secrets(
        &self,
        namespace: Id,
        resource: impl Display,
    ) -> Result<(), ApiError> {
        let entry = Entry::of(Action::ReadSecrets, namespace, resource);
        Ok(self.record(&mut *self.connection().await?, &entry).await?)
    }

    /// A connection to the database, of those that the caller's account may hold. Hold one at a time.
    pub(crate) async fn connection(
        &self,
    ) -> Result<impl DerefMut<Target = AsyncPgConnection> + Send + use<>, ApiError> {
        self.state.connection_for(self.key.account).await
    }

    /// Spends points in addition to those of the request itself: at most half of what a minute has, so that no
    /// single request can be too dear for ever.
    pub(crate) async fn charge(&self, points: u32) -> Result<(), ApiError> {
        let payer = payer(&self.key);
        let points = points.min(self.state.rates.limit_of(payer.key) / 2);
        let standing = Meter::charge(&self.state, payer, points).await?;
        // Once a request.
        let _ = self.charged.set(standing);
        Ok(())
    }

    /// The Namespace with this id, which the caller may read.
    pub(crate) async fn readable(&self, id: &str) -> Result<Id, ApiError> {
        let id: Id = id.parse().ok().ok_or(ApiError::NotFound("namespace"))?;
        let account = {
            let mut conn = self.connection().await?;
            namespaces::account(&mut conn, id).await?
        };
        let account = account.ok_or(ApiError::NotFound("namespace"))?;
        if account == self.key.account && self.is_in_scope(id) {
            Ok(id)
        } else {
            Err(ApiError::Forbidden(
                "api key not permitted for this namespace",
            ))
        }
    }

    /// Returns true if the key is not narrowed to other Namespaces.
    pub(crate) fn is_in_scope(&self, id: Id) -> bool {
        let narrowed = self.key.namespaces.as_ref();
        narrowed.is_none_or(|ids| ids.contains(&id))
    }

    /// The Namespace with this id, which the caller may change things in.
    pub(crate) async fn writable(&self, id: &str) -> Result<Id, ApiError> {
        let id = self.readable(id).await?;
        if self.key.role.may_write() {
            Ok(id)
        } else {
            Err(ApiError::Forbidden("api key not permitted to write"))
        }
    }

    /// Returns the scope of audit events that the caller may read: the Namespace with this id or, for `-`, the whole account.
    pub(crate) async fn auditable(&self, id: &str) -> Result<audit::Scope, ApiError> {
        let whole = id == "-";
        let namespace = match whole {
            true => None,
            false => Some(self.readable(id).await?),
        };
        let is_narrowed = self.key.namespaces.is_some();
        if !self.key.role.may_audit() || whole && is_narrowed {
            return Err(ApiError::Forbidden(
                "api key not permitted to read audit events",
            ));
        }
        Ok(audit::Scope {
            account: self.key.account,
            namespace,
        })
    }

    /// The Namespace with this id, which the caller may delete.
    pub(crate) async fn deletable(&self, id: &str) -> Result<Id, ApiError> {
        let id = self.readable(id).await?;
        if self.key.role.may_manage_namespaces() {
            Ok(id)
        } else {
            Err(ApiError::Forbidden(
                "api key not permitted to delete namespaces",
            ))
        }
    }

    /// Account where the caller may create Namespaces. A key that is narrowed to some may not:
    /// it could not see the new one.
    pub(crate) fn may_create_namespaces(&self) -> Result<Id, ApiError> {
        if self.key.role.may_manage_namespaces() && self.key.namespaces.is_none() {
            Ok(self.key.account)
        } else {
            Err(ApiError::Forbidden(
                "api key not permitted to create namespaces",
            ))
        }
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(
            request
                .extensions()
                .get::<Self>()
                .cloned()
                .ok_or(ApiError::Unauthenticated),
        )
    }
}

/// The middleware of all of `/v1`: answers 401 or 429, or leaves the [`Caller`] with the request, and tells
/// the client how its key stands.
pub(crate) async fn authenticate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let key = bearer(request.headers()).and_then(|text| text.parse().ok());
    admit(request, next, key).await
}

/// The middleware of `/feeds`: as [`authenticate`], and the key may be the password of Basic authentication
/// (RFC 7617), which is all that feed readers can do.
pub(crate) async fn authenticate_reader(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let headers = request.headers();
    let key = match bearer(headers) {
        Some(text) => text.parse().ok(),
        None => password(headers).and_then(|text| text.parse().ok()),
    };
    let mut answer = admit(request, next, key).await?;
    if answer.status() == StatusCode::UNAUTHORIZED {
        // A reader asks its user for a password only if this scheme is offered.
        let ask = HeaderValue::from_static("Basic realm=\"Earshot\", charset=\"UTF-8\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, ask);
    }
    Ok(answer)
}

async fn admit(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
    key: Option<ApiKey>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    match caller(&request, key).await {
        Ok(caller) => {
            tracing::Span::current().record("api_key.id", caller.key.id.to_string());
            // As it is routed, with what was percent-encoded decoded.
            let cost = rates::cost(request.method(), request.match_info().as_str());
            let state = Arc::clone(&caller.state);
            match Meter::charge(&state, payer(&caller.key), cost).await {
                Ok(standing) => {
                    let charged = Arc::clone(&caller.charged);
                    request.extensions_mut().insert(caller);
                    let mut answer = next.call(request).await?;
                    let standing = charged.get().copied().unwrap_or(standing);
                    standing.add_to(answer.headers_mut());
                    Ok(answer.map_into_left_body())
                }
                Err(error) => Ok(request
                    .into_response(error.error_response())
                    .map_into_right_body()),
            }
        }
        Err(error) => Ok(request
            .into_response(error.error_response())
            .map_into_right_body()),
    }
}

fn payer(key: &KeyRecord) -> Payer {
    Payer {
        key: key.id,
        account: key.account,
    }
}

async fn caller(request: &ServiceRequest, key: Option<ApiKey>) -> Result<Caller, ApiError> {
    let state = request
        .app_data::<web::Data<AppState>>()
        .cloned()
        .ok_or_else(|| ApiError::Internal(anyhow::anyhow!("the app has no state")))?;
    let key = key.ok_or(ApiError::Unauthenticated)?;
    let now = Instant::now();
    let origin = state.guesses.origin(request);
    let address = guesses::network(origin);
    if let Some(wait) = state.guesses.wait(address, now)
        && !state.keys.has_worked(&key)
    {
        return Err(rates::too_many_failures(wait));
    }
    let record = state.keys.find(&state, key.id).await?;
    // Without a record the hash is compared too: the time tells nothing about which ids exist.
    let hash = record
        .as_ref()
        .map_or(&[0; 32][..], |record| &record.secret_hash);
    let matches = key.matches(hash);
    let Some(record) = record.filter(|record| matches && record.is_valid(Timestamp::now())) else {
        state.guesses.failed(address, now);
        return Err(ApiError::Unauthenticated);
    };
    Ok(Caller {
        key: record,
        // What the header holds else is reported with the request's other failing fields.
        test_mode: test_mode::parse(request.headers()).unwrap_or(false),
        address: origin,
        request_id: request.extensions().get::<RequestId>().cloned(),
        charged: Arc::default(),
        state,
    })
}

/// Returns whether the request carries a key that has worked on this replica within [`KNOWN_FOR`]. Asks no database.
pub(crate) fn is_known(request: &ServiceRequest) -> bool {
    let key = bearer(request.headers()).and_then(|text| text.parse().ok());
    let state = request.app_data::<web::Data<AppState>>();
    key.zip(state)
        .is_some_and(|(key, state)| state.keys.has_worked(&key))
}

/// The token of `Authorization: Bearer <token>`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

/// The password of `Authorization: Basic <user:password in base64>`.
fn password(headers: &HeaderMap) -> Option<String> {
    let decoded = STANDARD.decode(credentials(headers, "basic")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

/// Credentials after the scheme, which may be in any case (RFC 9110 11.1).
fn credentials<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let mut values = headers.get_all(AUTHORIZATION);
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
    scheme
        .eq_ignore_ascii_case(wanted)
        .then(|| token.trim_start())
}

/// Keys that were found recently.
#[derive(Default)]
pub(crate) struct KeyCache(Mutex<HashMap<Id, (Instant, Arc<KeyRecord>)>>);

impl KeyCache {
    async fn find(&self, state: &AppState, id: Id) -> Result<Option<Arc<KeyRecord>>, ApiError> {
        if let Some(record) = self.believed(id) {
            return Ok(Some(record));
        }
        // From before the look-up: what is found may be revoked while it travels.
        let looked_at = Instant::now();
        let mut conn = state.connection().await?;
        let record = keys::find(&mut conn, id).await?.map(Arc::new);
        if let Some(record) = &record {
            self.believe(id, looked_at, Arc::clone(record));
        }
        Ok(record)
    }

    /// Returns true if this whole key was right when it was last looked at, and that is not long ago.
    fn has_worked(&self, key: &ApiKey) -> bool {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = entries.get(&key.id);
        found.is_some_and(|(looked_at, record)| {
            looked_at.elapsed() < KNOWN_FOR && key.matches(&record.secret_hash)
        })
    }

    fn believed(&self, id: Id) -> Option<Arc<KeyRecord>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (looked_at, record) = entries.get(&id)?;
        (looked_at.elapsed() < BELIEVED_FOR).then(|| Arc::clone(record))
    }

    fn believe(&self, id: Id, looked_at: Instant, record: Arc<KeyRecord>) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for kept in [KNOWN_FOR, BELIEVED_FOR] {
            if entries.len() >= SWEEP_AT {
                entries.retain(|_, (looked_at, _)| looked_at.elapsed() < kept);
            }
        }
        entries.insert(id, (looked_at, record));
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::bearer;

    #[test]
    fn the_scheme_is_taken_in_any_case() {
        for (value, token) in [
            ("Bearer abc", Some("abc")),
            ("bearer abc", Some("abc")),
            ("BEARER  abc", Some("abc")),
            ("Basic abc", None),
            ("Bearer", None),
            ("abc", None),
            ("", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(bearer(&headers), token, "{value}");
        }
    }

    #[test]
    fn two_keys_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        assert_eq!(bearer(&headers), None);
    }
}
