//! A scripted server on loopback that records its requests.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// The response to a request.
#[derive(Debug, Clone)]
pub enum Answer {
    Status(u16),
    Full {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// Another answer, after a delay.
    After(Duration, Box<Answer>),
    /// Another answer, as soon as the value is true.
    Once(watch::Receiver<bool>, Box<Answer>),
    /// A successful status and a page of this many bytes.
    Long(usize),
    /// No response, and the connection stays open.
    Hang,
}

impl Answer {
    pub fn after(wait: Duration, then: Self) -> Self {
        Self::After(wait, Box::new(then))
    }

    pub fn once(held: &watch::Receiver<bool>, then: Self) -> Self {
        Self::Once(held.clone(), Box::new(then))
    }

    pub fn page(html: &str) -> Self {
        Self::Full {
            status: 200,
            headers: vec![("content-type", "text/html; charset=utf-8".to_owned())],
            body: html.as_bytes().to_vec(),
        }
    }

    pub fn redirect(to: &str) -> Self {
        Self::Full {
            status: 302,
            headers: vec![("location", to.to_owned())],
            body: Vec::new(),
        }
    }
}

type Script = dyn Fn(usize, &Request) -> Answer + Send + Sync;

struct Shared {
    script: Box<Script>,
    requests: Mutex<Vec<Request>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// The server stops when it is dropped.
pub struct TestServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl TestServer {
    /// Starts a server. `script` returns the response to a request, given its number from 0.
    ///
    /// # Panics
    /// If there is no free port.
    pub async fn start(script: impl Fn(usize, &Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(Shared {
            script: Box::new(script),
            requests: Mutex::default(),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let shared = Arc::clone(&serving);
                connections.spawn(async move {
                    // A caller that goes away ends only its connection.
                    let _ = serve(stream, &shared).await;
                });
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    pub fn count(&self) -> usize {
        lock(&self.shared.requests).len()
    }

    /// Number of requests that are not answered yet.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::Relaxed)
    }

    /// Maximum number of requests that were open at the same time.
    pub fn most_open(&self) -> usize {
        self.shared.most_open.load(Ordering::Relaxed)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a request as open.
struct Open<'a>(&'a Shared);

impl<'a> Open<'a> {
    fn new(shared: &'a Shared) -> Self {
        let open = shared.open.fetch_add(1, Ordering::Relaxed) + 1;
        shared.most_open.fetch_max(open, Ordering::Relaxed);
        Self(shared)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let open = Open::new(shared);
        let number = {
            let mut requests = lock(&shared.requests);
            requests.push(request.clone());
            requests.len() - 1
        };
        let mut answer = (shared.script)(number, &request);
        let (status, headers, body) = loop {
            match answer {
                Answer::Status(status) => break (status, Vec::new(), Vec::new()),
                Answer::Full {
                    status,
                    headers,
                    body,
                } => break (status, headers, body),
                Answer::After(wait, then) => {
                    tokio::time::sleep(wait).await;
                    answer = *then;
                }
                Answer::Once(mut held, then) => {
                    // A test that ended without a release closes the connection.
                    if held.wait_for(|released| *released).await.is_err() {
                        return Ok(());
                    }
                    answer = *then;
                }
                Answer::Long(bytes) => {
                    let page = vec![("content-type", "text/html".to_owned())];
                    break (200, page, vec![b'a'; bytes]);
                }
                Answer::Hang => {
                    // Ends when the caller closes.
                    let mut rest = [0; 64];
                    while stream.read(&mut rest).await? > 0 {}
                    return Ok(());
                }
            }
        };
        let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        drop(open);
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method,
        path,
        headers,
        body: Vec::new(),
    };
    let length = request
        .header("content-length")
        .and_then(|value| value.parse().ok())
        .unwrap_or(0);
    request.body = vec![0; length];
    stream.read_exact(&mut request.body).await?;
    Ok(Some(request))
}
