//! The demo customer's server: checks the secret header, logs each Scan once, answers 204.

use std::{
    collections::HashSet, net::SocketAddr, net::TcpListener, sync::Mutex, sync::PoisonError, thread,
};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, dev::ServerHandle, web};
use serde_json::Value;

pub(super) const SECRET: &str = "larkspur-demo";
const PATH: &str = "/scans";

/// The running server. Stops when dropped.
pub(super) struct Receiver {
    address: SocketAddr,
    handle: ServerHandle,
}

impl Receiver {
    /// Serves from a separate thread.
    pub(super) fn start(address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let seen = web::Data::new(Mutex::new(HashSet::<String>::new()));
        let server = HttpServer::new(move || {
            App::new()
                .app_data(seen.clone())
                .route(PATH, web::post().to(receive))
        })
        .workers(1)
        .disable_signals()
        .listen(listener)?
        .run();
        let handle = server.handle();
        thread::Builder::new()
            .name("demo-receiver".to_owned())
            .spawn(move || {
                if let Err(error) = actix_web::rt::System::new().block_on(server) {
                    tracing::warn!("the demo receiver ended: {error}");
                }
            })?;
        Ok(Self { address, handle })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // `stop` sends the command at once; its future only waits for the end.
        drop(self.handle.stop(false));
    }
}

async fn receive(
    request: HttpRequest,
    body: web::Json<Value>,
    seen: web::Data<Mutex<HashSet<String>>>,
) -> HttpResponse {
    let secret = request
        .headers()
        .get("x-demo-secret")
        .and_then(|value| value.to_str().ok());
    if secret != Some(SECRET) {
        return HttpResponse::Unauthorized().finish();
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&body["name"]);
    // A delivery may arrive more than once; the name identifies duplicates.
    if seen
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(name.clone())
    {
        let (title, url) = (text(&body["post"]["title"]), text(&body["post"]["url"]));
        tracing::info!(scan.name = name, title, url, "demo receiver: got a Scan");
    }
    HttpResponse::NoContent().finish()
}
