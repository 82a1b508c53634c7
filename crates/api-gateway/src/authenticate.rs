//! Authentication: checks the key of a request before anything else.
//!
//! A key that was found stays cached for three seconds. So most requests need no look-up, and revocation works
//! within five seconds on every replica. Unknown keys are not cached, so a new key works at once. Clients that try
//! invalid keys are throttled ([`guesses`]).
//!
//! Response times reveal nothing about keys. A key is found by its id, which is not secret, and the hash of its
//! secret is compared in constant time, even if no such key exists. All invalid keys get the same response.

pub(crate) mod expiring;
pub(crate) mod guesses;
pub(crate) mod key_cache;

use std::{
    fmt::Display,
    net::IpAddr,
    ops::DerefMut,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
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
    AsyncPgConnection, MAX_PAGE_BYTES, QueryResult, audit, keys::KeyRecord, namespaces,
    rates::Payer,
};

use self::guesses::Guesses;
use crate::{
    ApiError,
    in_flight::{self, Counted, Reserved},
    rates::{self, standing::Standing},
    request_id::RequestId,
    state::AppState,
    test_mode,
};

/// The bearer of a valid key.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) key: Arc<KeyRecord>,
    /// True if the request's changes are rolled back.
    pub(crate) test_mode: bool,
    /// Address of the client, behind trusted proxies.
    address: IpAddr,
    request_id: Option<RequestId>,
    extra: Arc<Mutex<Extra>>,
    pub(crate) state: web::Data<AppState>,
}

/// Extra costs of one request.
#[derive(Default)]
struct Extra {
    /// State of the key's rate limit after extra points.
    charged: Option<Standing>,
    /// Bytes of the response.
    reserved: Option<Reserved>,
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

    /// Returns a database connection from the share of the caller's account. Hold one at a time.
    pub(crate) async fn connection(
        &self,
    ) -> Result<impl DerefMut<Target = AsyncPgConnection> + Send + use<>, ApiError> {
        self.state.database.connection_for(self.key.account).await
    }

    /// Spends points in addition to those of the request itself. They never exceed half of a minute's limit, so
    /// that no request is too expensive for ever.
    pub(crate) async fn charge(&self, points: u32) -> Result<(), ApiError> {
        let payer = payer(&self.key);
        let points = points.min(self.state.rates.limit_of(payer.key) / 2);
        let state = &self.state;
        let standing = state.rates.charge(&state.database, payer, points).await?;
        self.extra().charged = Some(standing);
        Ok(())
    }

    /// Waits until the account may have another page of a list in memory. Call it before the rows are read, and
    /// without a database connection.
    pub(crate) async fn reserve_page(&self) -> Result<(), ApiError> {
        let has_reserved = self.extra().reserved.is_some();
        if !has_reserved {
            let reserved = self.reserve(MAX_PAGE_BYTES).await?;
            self.extra().reserved = Some(reserved);
        }
        Ok(())
    }

    /// Waits until the account may have so many bytes in memory, for work whose response does not show its size. Call it
    /// like [`Self::reserve_page`].
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reserved, ApiError> {
        let in_flight = &self.state.in_flight;
        in_flight.reserve(self.key.account, bytes).await
    }

    /// Keeps reserved bytes until the response counts.
    pub(crate) fn keep(&self, reserved: Option<Reserved>) {
        self.extra().reserved = reserved;
    }

    /// Waits until the account may have so many more bytes of bodies in memory.
    pub(crate) async fn reserve_body(&self, bytes: usize) -> Result<Reserved, ApiError> {
        self.state.reserve_body(self.key.account, bytes).await
    }

    /// Refuses a request if the account's clients must first read the responses that they have. Call it directly before
    /// a change, whose response then counts in any case.
    pub(crate) fn check_unread(&self) -> Result<(), ApiError> {
        self.state.in_flight.check_unread(self.key.account)
    }

    /// Counts so many bytes of a response that can still be refused, and charges for them.
    async fn pay_for(
        &self,
        bytes: usize,
        reserved: Option<Reserved>,
    ) -> Result<Arc<Counted>, ApiError> {
        if reserved.is_none() {
            // The whole response is in memory already, so it does not wait there.
            self.check_unread()?;
        }
        let counted = self.count(bytes, reserved);
        let points = rates::cost_of_response(bytes);
        if points > 0 {
            self.charge(points).await?;
        }
        Ok(counted)
    }

    /// Counts so many bytes of a response, also beyond the limits.
    fn count(&self, bytes: usize, reserved: Option<Reserved>) -> Arc<Counted> {
        let in_flight = &self.state.in_flight;
        in_flight.count(self.key.account, reserved, bytes)
    }

    /// Returns the response, which is `counted` until it is written.
    fn send(
        answer: ServiceResponse<impl MessageBody + 'static>,
        counted: Arc<Counted>,
    ) -> ServiceResponse<BoxBody> {
        let in_http2 = Arc::clone(&counted);
        let mut answer = answer.map_body(|_, body| in_flight::in_pieces(body.boxed(), counted));
        answer.response_mut().extensions_mut().insert(in_http2);
        answer
    }

    fn extra(&self) -> MutexGuard<'_, Extra> {
        self.extra.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the Namespace with this id if the caller may read it.
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

    /// Returns the Namespace with this id if the caller may change its content.
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

    /// Returns the Namespace with this id if the caller may delete it.
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

    /// Returns the account that the caller may create Namespaces in. A key that is restricted to some Namespaces
    /// may not: it could not see the new one.
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

/// Middleware of `/v1`: answers 401 or 429, or attaches the [`Caller`] to the request. Adds the rate-limit headers.
pub(crate) async fn authenticate(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    let key = bearer(request.headers()).and_then(|text| text.parse().ok());
    admit(request, next, key).await
}

/// Middleware of `/feeds`: same as [`authenticate`], but also accepts the key as the password of Basic
/// authentication (RFC 7617), because feed readers can do no more.
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
        // A feed reader asks its user for a password only if the response offers this scheme.
        let ask = HeaderValue::from_static("Basic realm=\"Earshot\", charset=\"UTF-8\"");
        answer.headers_mut().insert(WWW_AUTHENTICATE, ask);
    }
    Ok(answer)
}

/// Returns the bearer of the request's key, for a path outside of these middlewares. Costs no points.
pub(crate) async fn bearer_of(request: &HttpRequest) -> Result<Caller, ApiError> {
    let key = bearer(request.headers()).and_then(|text| text.parse().ok());
    caller(request, key).await
}

async fn admit(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
    key: Option<ApiKey>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody, BoxBody>>, Error> {
    match caller(request.request(), key).await {
        Ok(caller) => {
            // The path as the router sees it, percent-decoded.
            let cost = rates::cost(request.method(), request.match_info().as_str());
            let state = Arc::clone(&caller.state);
            match state
                .rates
                .charge(&state.database, payer(&caller.key), cost)
                .await
            {
                Ok(standing) => {
                    if !caller.key.allows(caller.address) {
                        Guesses::refused_network();
                        let refusal =
                            ApiError::Forbidden("api key not permitted from this address");
                        let mut answer = request.into_response(refusal.error_response());
                        standing.add_to(answer.headers_mut());
                        return Ok(answer.map_into_right_body());
                    }
                    state.keys.record_use(&caller.key);
                    let is_read = rates::is_read(request.method(), request.match_info().as_str());
                    request.extensions_mut().insert(caller.clone());
                    let answer = next.call(request).await?;
                    // A change that has been made is reported in any case.
                    let can_be_refused = is_read || !answer.status().is_success();
                    let reserved = caller.extra().reserved.take();
                    let size = answer.response().body().size();
                    let counted = in_flight::counted(size, answer.request().version());
                    let mut answer = match counted {
                        None => answer.map_into_left_body(),
                        Some(bytes) => {
                            let counted = match can_be_refused {
                                true => caller.pay_for(bytes, reserved).await,
                                false => Ok(caller.count(bytes, reserved)),
                            };
                            match counted {
                                Ok(counted) => Caller::send(answer, counted),
                                Err(error) => answer.error_response(error),
                            }
                            .map_into_right_body()
                        }
                    };
                    let standing = caller.extra().charged.unwrap_or(standing);
                    standing.add_to(answer.headers_mut());
                    Ok(answer)
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

async fn caller(request: &HttpRequest, key: Option<ApiKey>) -> Result<Caller, ApiError> {
    let state = request
        .app_data::<web::Data<AppState>>()
        .cloned()
        .ok_or_else(|| ApiError::Internal(anyhow::anyhow!("the app has no state")))?;
    let key = key.ok_or(ApiError::Unauthenticated)?;
    let now = Instant::now();
    let origin = state.guesses.origin(request);
    let address = guesses::network(origin);
    let throttled = state.guesses.wait(address, now);
    let throttled = throttled.filter(|_| !state.keys.has_worked(&key));
    let turn = match throttled {
        Some(wait) => match state.guesses.turn(address).await {
            Some(turn) => Some(turn),
            None => return Err(rates::too_many_failures(wait)),
        },
        None => None,
    };
    let record = state.keys.find(&state.database, key.id).await?;
    drop(turn);
    // The hash is compared even without a record, so that timing does not reveal which ids exist.
    let hash = record
        .as_ref()
        .map_or(&[0; 32][..], |record| &record.secret_hash);
    let matches = key.matches(hash);
    let Some(record) = record.filter(|record| matches && record.is_valid(Timestamp::now())) else {
        state.guesses.failed(address, now);
        return Err(match throttled {
            Some(wait) => rates::too_many_failures(wait),
            None => ApiError::Unauthenticated,
        });
    };
    tracing::Span::current().record("api_key.id", record.id.to_string());
    Ok(Caller {
        key: record,
        // An invalid value is reported later, with the request's other invalid fields.
        test_mode: test_mode::parse(request.headers()).unwrap_or(false),
        address: origin,
        request_id: request.extensions().get::<RequestId>().cloned(),
        extra: Arc::default(),
        state,
    })
}

/// Returns true if the key of the request has worked on this replica within the last 15 minutes. Does not query the
/// database.
pub(crate) fn is_known(request: &ServiceRequest) -> bool {
    let key = bearer(request.headers()).and_then(|text| text.parse().ok());
    let state = request.app_data::<web::Data<AppState>>();
    key.zip(state)
        .is_some_and(|(key, state)| state.keys.has_worked(&key))
}

/// Returns the token of `Authorization: Bearer <token>`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

/// Returns the password of `Authorization: Basic <user:password in base64>`.
fn password(headers: &HeaderMap) -> Option<String> {
    let decoded = STANDARD.decode(credentials(headers, "basic")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':')
        .map(|(_, password)| password.to_owned())
}

/// Returns the credentials after the scheme, which is case-insensitive (RFC 9110 11.1).
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

#[cfg(test)]
mod tests {
    use actix_web::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::bearer;

    #[test]
    fn scheme_is_case_insensitive() {
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
    fn request_with_two_keys_has_none() {
        let mut headers = HeaderMap::new();
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        headers.append(AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        assert_eq!(bearer(&headers), None);
    }
}
