//! The REST API: the only service that customers call.
//!
//! A request passes, in this order: [`observe`] (span, metrics, request id, and an error body for responses that
//! lack one), [`authenticate`] (the key), the routes of [`routes`], and a handler. The handler checks permissions,
//! reads the body, does one thing in one transaction, and builds the response. `openapi.yaml` describes the
//! responses; the gateway serves it, and tests compare the responses with it.
//!
//! The gateway starts even if its dependencies are unavailable. Without a database it answers 503. Without a broker
//! it works, and readers of events find the work by themselves. It calls no one except the provider of sign-ins
//! ([`sign_in`]).

mod answer;
mod authenticate;
mod body;
mod compress;
mod connection;
mod console;
mod cors;
mod database;
mod error;
mod feeds;
mod feeds_of_scans;
mod handlers;
mod head;
mod http2;
mod idempotency;
mod in_flight;
mod in_process;
mod inner_api;
mod link_rates;
mod observe;
mod own;
mod packed;
mod pages;
mod parent;
mod peers;
mod query;
mod quotas;
mod rates;
mod request_id;
mod routes;
mod server;
mod shares;
mod sign_in;
mod state;
mod test_mode;
mod tls;
mod transaction;
mod upkeep;

pub use error::ApiError;
pub use routes::operations;
pub use server::{BindError, Gateway, listen};

use std::sync::Arc;

use backbone::Backbone;

/// Runs the whole service in a separate process.
///
/// # Errors
/// If the configuration is invalid or the address is in use.
pub async fn run(config: Arc<runtime::Config>, context: runtime::Context) -> anyhow::Result<()> {
    let backbone = Backbone::new(&config, context.service)?;
    let gateway =
        Gateway::new(listen(&config)?, &config, &backbone)?.alone_in_process(&config, &backbone);
    tracing::info!(api = %gateway.local_addr(), "serving the API");
    backbone
        .host(&context, gateway.serve(context.shutdown.clone()))
        .await
}
