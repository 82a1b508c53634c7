//! A receiver with minimal overhead, which can also hang, depending on the path.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::Instant,
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::requests;

#[derive(Default)]
struct Seen {
    count: AtomicU64,
    hung: AtomicI64,
    most_hung: AtomicI64,
    hang: AtomicBool,
    follow: AtomicBool,
    /// First arrival and count of each Scan, by its name.
    arrivals: Mutex<HashMap<String, (Instant, u32)>>,
}

pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Seen>,
}

impl Receiver {
    pub(crate) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Seen::default());
        let serving = Arc::clone(&seen);
        // A separate thread, so that load and receiver do not delay each other.
        std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let listener = listener.into_std()?;
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener)?;
                loop {
                    let (stream, _) = listener.accept().await?;
                    tokio::spawn(serve(stream, Arc::clone(&serving)));
                }
            })
        });
        Ok(Self { address, seen })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of requests that were read completely.
    pub(crate) fn count(&self) -> u64 {
        self.seen.count.load(Ordering::Relaxed)
    }

    /// Sets whether `/ok-then-hang` hangs.
    pub(crate) fn hang(&self, hang: bool) {
        self.seen.hang.store(hang, Ordering::Relaxed);
    }

    pub(crate) fn most_hung(&self) -> i64 {
        self.seen.most_hung.load(Ordering::Relaxed)
    }

    /// Starts or stops recording the arrivals of Scans.
    pub(crate) fn follow(&self, follow: bool) {
        self.seen.follow.store(follow, Ordering::Relaxed);
        self.arrivals().clear();
    }

    pub(crate) fn arrivals(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, u32)>> {
        self.seen
            .arrivals
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Seen>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4_096);
    while let Some((path, body)) = requests::next(&mut stream, &mut buffer).await? {
        seen.count.fetch_add(1, Ordering::Relaxed);
        if seen.follow.load(Ordering::Relaxed) {
            note(&seen, &buffer[body..]);
        }
        if !answer(&mut stream, &path, &seen).await? {
            break;
        }
    }
    Ok(())
}

fn note(seen: &Seen, body: &[u8]) {
    let now = Instant::now();
    let text = String::from_utf8_lossy(body);
    let Some(name) = text
        .split("\"name\":\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
    else {
        return;
    };
    let mut arrivals = seen.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    arrivals.entry(name.to_owned()).or_insert((now, 0)).1 += 1;
}

/// Answers a request, and returns whether the connection stays open.
async fn answer(stream: &mut TcpStream, path: &str, seen: &Seen) -> Result<bool> {
    let hang = path == "/hang" || path == "/ok-then-hang" && seen.hang.load(Ordering::Relaxed);
    if hang {
        let open = seen.hung.fetch_add(1, Ordering::Relaxed) + 1;
        seen.most_hung.fetch_max(open, Ordering::Relaxed);
        let mut rest = [0; 64];
        while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        seen.hung.fetch_sub(1, Ordering::Relaxed);
        return Ok(false);
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        .await?;
    Ok(true)
}
