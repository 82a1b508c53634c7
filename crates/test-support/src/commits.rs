//! A proxy between a test and its database that loses the answers to COMMIT.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

/// A proxy of PostgreSQL that can lose answers: it then forwards a COMMIT, waits until it is done, and closes the connection
/// in place of the answer.
pub struct Commits {
    url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    loses: AtomicBool,
    lost: AtomicUsize,
}

impl Commits {
    /// Starts the proxy to the database at `url`.
    ///
    /// # Panics
    /// If `url` is not a URL with a host, or no port is free.
    pub async fn start(url: &str) -> Self {
        let mut url: Url = url.parse().expect("the address is a URL");
        let host = url.host_str().expect("it has a host").to_owned();
        let target = (host, url.port().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        url.set_host(Some("127.0.0.1")).expect("it takes a host");
        url.set_port(Some(port)).expect("it takes a port");
        let state = Arc::<State>::default();
        let own = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (target, state) = (target.clone(), Arc::clone(&own));
                tokio::spawn(async move {
                    if let Ok(server) = TcpStream::connect(target).await {
                        state.pass(client, server).await;
                    }
                });
            }
        });
        Self {
            url: url.into(),
            state,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Begins or ends the loss.
    pub fn lose(&self, loses: bool) {
        self.state.loses.store(loses, Ordering::SeqCst);
    }

    /// Number of lost answers.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }
}

impl State {
    async fn pass(&self, mut client: TcpStream, mut server: TcpStream) {
        let (mut asked, mut answer) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                read = client.read(&mut asked) => {
                    let Ok(length @ 1..) = read else { return };
                    let commits = asked[..length].windows(7).any(|text| text == b"COMMIT\0");
                    if server.write_all(&asked[..length]).await.is_err() {
                        return;
                    }
                    if commits && self.loses.load(Ordering::SeqCst) {
                        let _ = server.read(&mut answer).await;
                        self.lost.fetch_add(1, Ordering::SeqCst);
                        return;
                    }
                }
                read = server.read(&mut answer) => {
                    let Ok(length @ 1..) = read else { return };
                    if client.write_all(&answer[..length]).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}
