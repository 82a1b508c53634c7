//! `/v1/namespaces/{namespaceId}/connections/{connectionId}:test`
//!
//! The gateway never sends the test itself. It stores a request in the database and waits until a dispatcher stores
//! the result there. It polls instead of holding a connection: a hundred waiting clients cost one small query each,
//! four times a second.

use std::time::{Duration, Instant};

use actix_web::web::Path;
use domain::{
    ConnectionName, Id,
    audit::{Action, Entry},
    trial_delivery::TestResult,
    web_url::{Kind, WebUrl},
};
use store::{
    connections,
    trial_deliveries::{self, PATIENCE, Progress},
};

use super::ConnectionPath;
use crate::{ApiError, answer::Found, authenticate::Caller, body::RawJson, transaction::Outcome};

const POLL: Duration = Duration::from_millis(250);
/// Services that run tests: the dispatcher, and the process that contains all services.
const DISPATCHERS: &[&str] = &["webhook-dispatcher", "earshot"];

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}:test`
pub(crate) async fn test(
    caller: Caller,
    path: Path<ConnectionPath>,
    body: RawJson,
) -> Result<Found<TestResult>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read_optional().await?;
    let connection = path.name()?;
    if caller.test_mode {
        let result = check(&caller, connection).await?;
        body.nothing()?;
        return Ok(Found(result));
    }
    let asked = caller
        .write(async move |conn| {
            let ids = [connection.connection];
            // Locked until the commit, so that the Connection still exists when the request is stored.
            if connections::lock_existing(conn, connection.namespace, &ids)
                .await?
                .is_empty()
            {
                return Err(ApiError::NotFound("connection"));
            }
            body.nothing()?;
            if !trial_deliveries::is_any_alive(conn, DISPATCHERS).await? {
                return Ok(Outcome::of(None, None));
            }
            let id = trial_deliveries::request(conn, connection).await?;
            let id = id.ok_or(ApiError::TooManyAtOnce)?;
            let entry = Entry::of(Action::Test, namespace, connection);
            Ok(Outcome::of(Some(id), Some(entry)))
        })
        .await?;
    Ok(Found(match asked {
        Some(id) => wait(&caller, id).await?,
        None => TestResult::unsent("no dispatcher is running", 0),
    }))
}

/// Checks everything that needs no request: the Connection exists, its sealed values can be opened, and its address
/// is allowed.
async fn check(caller: &Caller, connection: ConnectionName) -> Result<TestResult, ApiError> {
    let mut conn = caller.connection().await?;
    let endpoint = match connections::endpoint(&mut conn, &caller.state.sealer, connection).await {
        Err(store::Error::Sealed(_)) => {
            return Ok(TestResult::unsent(
                "its headers or secrets cannot be decrypted",
                0,
            ));
        }
        other => other?.ok_or(ApiError::NotFound("connection"))?,
    };
    let url = WebUrl::parse(&endpoint.url, &caller.state.addresses, Kind::Connection);
    Ok(match url {
        Err(_) => TestResult::unsent("its url is not one that may be sent to", 0),
        Ok(_) => TestResult {
            ok: true,
            sent: false,
            status_code: None,
            latency_ms: 0,
            error: None,
        },
    })
}

/// Waits for the result until the timeout or until the gateway stops. If a process dies meanwhile, the request's
/// row is purged after a minute.
async fn wait(caller: &Caller, id: Id) -> Result<TestResult, ApiError> {
    let started = Instant::now();
    let stop = caller.state.bodies();
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            () = stop.cancelled() => {
                let cause = anyhow::anyhow!("the gateway stops, and a test is not answered");
                return Err(ApiError::Unavailable(cause));
            }
        }
        let mut conn = caller.connection().await?;
        match trial_deliveries::progress(&mut conn, id).await? {
            Progress::Answered(result) => return Ok(result),
            Progress::Gone => return Err(ApiError::NotFound("connection")),
            Progress::Waiting | Progress::Taken if started.elapsed() < PATIENCE => {}
            Progress::Waiting | Progress::Taken => {
                let waited = started.elapsed().as_millis().try_into().unwrap_or(u32::MAX);
                let error = if trial_deliveries::withdraw(&mut conn, id).await? {
                    "no dispatcher took the test in time"
                } else {
                    "the dispatcher that took the test did not answer in time"
                };
                return Ok(TestResult::unsent(error, waited));
            }
        }
    }
}
