//! A receiver with minimal overhead, which can also misbehave, depending on the path.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

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
    loop {
        buffer.clear();
        let head = loop {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length: usize = text
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.split("\r\n").next()?.parse().ok())
            .unwrap_or(0);
        while buffer.len() < head + length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        seen.count.fetch_add(1, Ordering::Relaxed);
        if seen.follow.load(Ordering::Relaxed) {
            note(&seen, &buffer[head..]);
        }
        let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
        if !answer(&mut stream, &path, &seen).await? {
            return Ok(());
        }
    }
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
    let answer: &[u8] = match path {
        "/500" => b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n",
        "/429" => b"HTTP/1.1 429 X\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n",
        "/100ms" => {
            tokio::time::sleep(Duration::from_millis(100)).await;
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
        }
        "/reset" => return Ok(false),
        "/drip" => {
            for byte in b"HTTP/1.1 200 X\r\ncontent-length: 0\r\n\r\n" {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            return Ok(true);
        }
        _ => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    };
    stream.write_all(answer).await?;
    Ok(true)
}
