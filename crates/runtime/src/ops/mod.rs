//! The server of `/healthz`, `/readyz` and `/metrics`.
//!
//! It runs on a separate thread and runtime, so that it answers while the process is busy, and a probe can
//! distinguish a busy process from a dead one. It never calls a dependency: see [`crate::health`].

mod metrics;

use std::{
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer,
    dev::ServerHandle,
    http::{StatusCode, header},
    web,
};
use serde_json::json;

use crate::Health;

/// A running ops server; it stops when dropped.
#[derive(Debug)]
pub struct OpsServer {
    address: SocketAddr,
    handle: ServerHandle,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("ops.listen: cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot start the ops server")]
    Start(#[source] std::io::Error),
}

impl OpsServer {
    /// The address it listens on, with the actual port if port 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for OpsServer {
    fn drop(&mut self) {
        // The command is sent when `stop` is called; the future only waits for the end.
        drop(self.handle.stop(false));
    }
}

/// Serves `health` and the process's metrics on `listen`.
///
/// # Errors
///
/// If it cannot listen on the address.
pub fn start(listen: SocketAddr, health: Health) -> Result<OpsServer, Error> {
    let failed = |source| Error::Listen {
        address: listen,
        source,
    };
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;

    let (sender, started) = std::sync::mpsc::sync_channel(1);
    thread::Builder::new()
        .name("ops".to_owned())
        .spawn(move || {
            actix_web::rt::System::new().block_on(async move {
                match server(listener, health) {
                    Ok(server) => {
                        let _ = sender.send(Ok(server.handle()));
                        if let Err(error) = server.await {
                            tracing::error!(
                                error = &error as &dyn std::error::Error,
                                "ops server failed"
                            );
                        }
                    }
                    Err(error) => {
                        let _ = sender.send(Err(error));
                    }
                }
            });
        })
        .map_err(Error::Start)?;
    let handle = started
        .recv()
        .map_err(|error| Error::Start(std::io::Error::other(error)))?
        .map_err(Error::Start)?;
    Ok(OpsServer { address, handle })
}

fn server(listener: TcpListener, health: Health) -> std::io::Result<actix_web::dev::Server> {
    let health = web::Data::new(health);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(health.clone())
            .service(web::resource("/healthz").get(healthz).head(healthz))
            .service(web::resource("/readyz").get(readyz).head(readyz))
            .service(web::resource("/metrics").get(metrics))
            .default_service(web::to(not_found))
    })
    .workers(1)
    .max_connections(256)
    .client_request_timeout(Duration::from_secs(5))
    .shutdown_timeout(1)
    .disable_signals()
    .listen(listener)?
    .run();
    Ok(server)
}

async fn healthz(health: web::Data<Health>) -> HttpResponse {
    if health.is_alive() {
        answer(StatusCode::OK).json(json!({"status": "ok"}))
    } else {
        answer(StatusCode::SERVICE_UNAVAILABLE)
            .json(json!({"status": "unavailable", "detail": "runtime does not respond"}))
    }
}

async fn readyz(health: web::Data<Health>) -> HttpResponse {
    let report = health.report();
    let status = if report.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    answer(status).json(report)
}

async fn metrics(health: web::Data<Health>) -> HttpResponse {
    match metrics::render(&health.report()) {
        Ok(text) => answer(StatusCode::OK)
            .content_type("text/plain; version=0.0.4; charset=utf-8")
            .body(text),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "metrics cannot be rendered"
            );
            answer(StatusCode::INTERNAL_SERVER_ERROR).json(json!({"error": "see the log"}))
        }
    }
}

async fn not_found(request: HttpRequest) -> HttpResponse {
    let known = ["/healthz", "/readyz", "/metrics"];
    if known.contains(&request.path()) {
        return answer(StatusCode::METHOD_NOT_ALLOWED)
            .insert_header((header::ALLOW, "GET, HEAD"))
            .json(json!({"error": "method not allowed"}));
    }
    answer(StatusCode::NOT_FOUND).json(json!({"error": "not found", "paths": known}))
}

fn answer(status: StatusCode) -> actix_web::HttpResponseBuilder {
    let mut answer = HttpResponse::build(status);
    answer.insert_header((header::CACHE_CONTROL, "no-store"));
    answer
}
