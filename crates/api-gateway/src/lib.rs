//! The REST API: the only service that customers speak to.
//!
//! A request passes, in this order: [`observe`] (span, metrics, request id, and an error body for
//! whatever lacks one), [`authenticate`] (the key), the routes of [`routes`], and a handler, which
//! authorises, reads the body, does one thing in one transaction, and shapes the answer. What the
//! answers look like is `openapi.yaml`, which the gateway also serves, and which tests hold it to.
//!
//! The gateway starts even if its dependencies are away. Without a database it answers 503; without a broker it works,
//! and events wait in the outbox. It never calls out.

mod answer;
mod authenticate;
mod body;
mod compress;
mod console;
mod cors;
mod error;
mod farewell;
mod feeds;
mod feeds_of_scans;
mod handlers;
mod idempotency;
mod observe;
mod own;
mod pages;
mod query;
mod quotas;
mod rates;
mod routes;
mod server;
mod shares;
mod state;
mod stream;
mod test_mode;
mod tls;
mod upkeep;
mod wire;

pub use error::ApiError;
pub use routes::operations;
pub use server::{BindError, Gateway, listen};

use std::sync::Arc;

use backbone::Backbone;

/// The whole service, for a separate process.
///
/// # Errors
/// When the configuration cannot be used, or the address is taken.
pub async fn run(config: Arc<runtime::Config>, context: runtime::Context) -> anyhow::Result<()> {
    let backbone = Backbone::new(&config, context.service)?;
    let gateway =
        Gateway::new(listen(&config)?, &config, &backbone)?.alone_in_process(&config, &backbone);
    tracing::info!(api = %gateway.local_addr(), "serving the API");
    backbone
        .host(&context, gateway.serve(context.shutdown.clone()))
        .await
}
