//! A proxy between a test and a server, through which the server can fall silent.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Forwards connections to a server.
pub struct Proxy {
    port: u16,
    silence: std::sync::Mutex<CancellationToken>,
    accepted: Arc<AtomicUsize>,
}

impl Proxy {
    /// `target` is `host:port`.
    ///
    /// # Panics
    /// If it finds no port.
    pub async fn start(target: &str) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let proxy = Arc::new(Self {
            port: listener.local_addr().expect("it is bound").port(),
            silence: std::sync::Mutex::default(),
            accepted: Arc::default(),
        });
        let (own, target) = (Arc::clone(&proxy), target.to_owned());
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                own.accepted.fetch_add(1, Ordering::SeqCst);
                let silence = own.silence.lock().expect("no panic").clone();
                let target = target.clone();
                tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(&target).await else {
                        return;
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        // The kernel acknowledges incoming data, and nothing reads it.
                        () = silence.cancelled() => std::future::pending().await,
                    }
                });
            }
        });
        proxy
    }

    /// Returns `url` with the address of this proxy.
    ///
    /// # Panics
    /// If it is not a URL with a host.
    pub fn url(&self, url: &str) -> String {
        let mut url: Url = url.parse().expect("the address is a URL");
        url.set_host(Some("127.0.0.1")).expect("it takes a host");
        url.set_port(Some(self.port)).expect("it takes a port");
        url.into()
    }

    /// Existing connections get no answer any more. New ones work.
    ///
    /// # Panics
    /// Never.
    pub fn silence(&self) {
        let mut silence = self.silence.lock().expect("no panic");
        std::mem::take(&mut *silence).cancel();
    }

    /// Number of connections so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}
