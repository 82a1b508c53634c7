//! Test deliveries: one sample event, sent at once like every delivery, with the result returned to the waiting
//! client.
//!
//! It is also sent to disabled Connections and past an open circuit breaker, because a person requested it. It
//! affects neither, and is in no log. A test runs at most once. If this process dies meanwhile, the client gets a
//! result without an answer.

use std::{sync::Arc, time::Duration};

use backbone::work::{Settings, Work};
use domain::{
    ConnectionName, Id, Post, PostType, ScanName, Subforum, Timestamp, User, connection::Format,
    trial_delivery::TestResult,
};
use outbound::Request;
use store::{
    AsyncPgConnection, connections,
    deliveries::Subject,
    trial_deliveries,
    work::{Claim, Claimed, Leased},
};

use crate::{Dispatcher, mail, request::Parts};

/// Maximum number of tests that one replica runs at a time. They do not count towards the limits of deliveries. Their
/// number per account is limited where they are requested, so accounts are not distinguished here.
const MAX_OPEN: usize = 32;
const LOOK: Duration = Duration::from_millis(200);

/// Requested tests. One that was taken is never taken again, so they need no lease.
pub(crate) struct TrialDeliveries(pub(crate) Arc<Dispatcher>);

impl Work for TrialDeliveries {
    type Item = ConnectionName;

    fn settings(&self) -> Settings {
        // All tests count for one account, and one account gets half of the places.
        Settings::new("connection_test", LOOK, 2 * MAX_OPEN)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<ConnectionName>, store::Error> {
        let free = MAX_OPEN.saturating_sub(claim.known.len());
        let limit = i64::try_from(free).unwrap_or(i64::MAX);
        let taken = trial_deliveries::take(conn, claim.replica, limit).await?;
        let items = { taken.into_iter() }
            .map(|(id, connection)| Leased::unleased(&id.to_string(), connection));
        Ok(Claimed {
            items: items.collect(),
            ..Claimed::default()
        })
    }

    async fn run(&self, leased: &Leased<ConnectionName>) -> Result<(), store::Error> {
        if let Ok(id) = leased.key.parse() {
            make(&self.0, id, leased.item).await;
        }
        Ok(())
    }

    fn uses_table(&self) -> bool {
        false
    }
}

async fn make(dispatcher: &Dispatcher, id: Id, connection: ConnectionName) {
    let result = match request(dispatcher, connection).await {
        Ok(Some(result)) => result,
        // The Connection was deleted, and the row with it.
        Ok(None) => return,
        Err(error @ (store::Error::Sealed(_) | store::Error::Json(_))) => {
            tracing::error!(connection.name = %connection, "a connection cannot be tested: {:#}", anyhow::Error::from(error));
            TestResult::unsent("its headers or secrets cannot be decrypted", 0)
        }
        Err(error) => {
            tracing::warn!(connection.name = %connection, "a connection cannot be tested: {:#}", anyhow::Error::from(error));
            return;
        }
    };
    tracing::info!(connection.name = %connection, ok = result.ok, status = result.status_code, "tested");
    let written = async {
        let mut conn = dispatcher.backbone.pool.get().await?;
        trial_deliveries::answer(&mut conn, id, &result).await
    };
    if let Err(error) = written.await {
        tracing::warn!("cannot answer a test: {:#}", anyhow::Error::from(error));
    }
}

async fn request(
    dispatcher: &Dispatcher,
    connection: ConnectionName,
) -> Result<Option<TestResult>, store::Error> {
    let endpoint = {
        let mut conn = dispatcher.backbone.pool.get().await?;
        connections::endpoint(&mut conn, &dispatcher.sealer, connection).await?
    };
    let Some(endpoint) = endpoint else {
        return Ok(None);
    };
    let (name, post) = sample(connection);
    if endpoint.format == Format::Email {
        let result = mail::test(dispatcher, connection, &endpoint.url, name, &post).await?;
        return Ok(Some(result));
    }
    let post = Arc::new(post);
    let subject = Subject::Scan { name, post };
    let parts = Parts::of_sample(&endpoint, &subject);
    let body = parts.body().map_err(store::Error::Json)?;
    let headers = parts.headers(&body, Timestamp::now());
    let exchange = dispatcher
        .client
        .exchange(
            Request {
                method: parts.method(),
                url: &endpoint.url,
                headers: &headers,
                body,
            },
            dispatcher.config.dispatcher.timeout,
        )
        .await;
    let latency_ms = exchange
        .phases
        .total
        .as_millis()
        .try_into()
        .unwrap_or(u32::MAX);
    Ok(Some(match &exchange.status {
        Ok(status) => TestResult {
            ok: exchange.is_success(),
            sent: true,
            status_code: Some(*status),
            latency_ms,
            error: (!exchange.is_success()).then(|| format!("answered {status}, not 2xx")),
        },
        Err(failure) => TestResult {
            ok: false,
            // In these two cases nothing left this machine.
            sent: !matches!(
                failure,
                outbound::Failure::ForbiddenAddress { .. }
                    | outbound::Failure::InvalidRequest { .. }
            ),
            status_code: None,
            latency_ms,
            error: Some(format!("{}: {failure}", failure.word())),
        },
    }))
}

/// A Scan that is in no list, of a post that does not exist.
fn sample(connection: ConnectionName) -> (ScanName, Post) {
    let now = Timestamp::now();
    let scan = ScanName {
        namespace: connection.namespace,
        manager: Id::generate(),
        scan: Id::generate(),
    };
    let page = "https://example.com/earshot-test";
    let post = Post {
        post_type: PostType::ForumLink,
        time: now,
        id: format!("earshot:test-{}", scan.scan),
        title: Some("A test of this Connection".to_owned()),
        text: Some(
            "Somebody asked Earshot to send one sample event. Scans look like this; this one is of no post."
                .to_owned(),
        ),
        url: page.to_owned(),
        subforum: Some(Subforum {
            id: "test".to_owned(),
            name: "Earshot".to_owned(),
            url: page.to_owned(),
        }),
        user: User {
            id: "earshot".to_owned(),
            name: "Earshot".to_owned(),
            url: page.to_owned(),
        },
    };
    (scan, post)
}
