//! Load over HTTP/1.1 with little overhead: requests are prepared bytes, and only the status and the length of answers
//! are read.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

/// A request as it is sent over the network.
#[derive(Clone)]
pub(crate) struct Request(pub(crate) Vec<u8>);

pub(crate) struct Found {
    /// Answers per second.
    pub(crate) rate: f64,
    /// Latency in milliseconds; with [`open`], counted from the due time of the request.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

/// Each client sends the next request as soon as it has its answer.
pub(crate) async fn closed(
    address: SocketAddr,
    requests: &[Request],
    clients: usize,
    span: Duration,
) -> Result<Found> {
    let begin = Instant::now();
    let end = begin + span;
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let requests = requests.to_vec();
        let mut wire = Wire::connect(address).await?;
        tasks.spawn(async move {
            let mut delays = Vec::new();
            let mut at = client * 7_919;
            while Instant::now() < end {
                let asked = Instant::now();
                wire.ask(&requests[at % requests.len()]).await?;
                delays.push(asked.elapsed());
                at += 1;
            }
            anyhow::Ok(delays)
        });
    }
    gather(tasks, begin).await
}

/// Requests are due at `rate`, regardless of answers: delays are measured from the due time.
pub(crate) async fn open(
    address: SocketAddr,
    requests: &[Request],
    clients: usize,
    rate: f64,
    span: Duration,
) -> Result<Found> {
    let begin = Instant::now();
    let end = begin + span;
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let requests = requests.to_vec();
        let mut wire = Wire::connect(address).await?;
        tasks.spawn(async move {
            let mut delays = Vec::new();
            let mut at = client;
            loop {
                #[expect(clippy::cast_precision_loss, reason = "some thousands")]
                let due = begin + Duration::from_secs_f64(at as f64 / rate);
                if due >= end {
                    return anyhow::Ok(delays);
                }
                tokio::time::sleep_until(due.into()).await;
                wire.ask(&requests[at % requests.len()]).await?;
                delays.push(due.elapsed());
                at += clients;
            }
        });
    }
    gather(tasks, begin).await
}

/// Returns the median delays of two requests, sent in turns on one connection, in milliseconds.
pub(crate) async fn in_turns(
    address: SocketAddr,
    requests: [&Request; 2],
    turns: usize,
) -> Result<(f64, f64)> {
    let mut wire = Wire::connect(address).await?;
    let mut delays = [Vec::new(), Vec::new()];
    for _ in 0..turns {
        for (request, delays) in requests.iter().zip(&mut delays) {
            let asked = Instant::now();
            wire.ask(request).await?;
            delays.push(asked.elapsed());
        }
    }
    let [mut one, mut two] = delays;
    one.sort_unstable();
    two.sort_unstable();
    Ok((quantile(&one, 50), quantile(&two, 50)))
}

/// Returns the body of one answer.
pub(crate) async fn one(address: SocketAddr, request: &Request) -> Result<Vec<u8>> {
    let mut wire = Wire::connect(address).await?;
    let body = wire.ask(request).await?;
    Ok(wire.buffer[body..].to_vec())
}

async fn gather(mut tasks: JoinSet<Result<Vec<Duration>>>, begin: Instant) -> Result<Found> {
    let mut delays = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        delays.extend(ended??);
    }
    let took = begin.elapsed();
    delays.sort_unstable();
    #[expect(clippy::cast_precision_loss, reason = "some hundred thousands")]
    let count = delays.len() as f64;
    Ok(Found {
        rate: count / took.as_secs_f64(),
        p50: quantile(&delays, 50),
        p99: quantile(&delays, 99),
    })
}

fn quantile(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted
        .get(place)
        .map_or(f64::NAN, |delay| delay.as_secs_f64() * 1_000.0)
}

struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Wire {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a request, reads the whole answer, and returns the start of its body.
    async fn ask(&mut self, request: &Request) -> Result<usize> {
        self.buffer.clear();
        self.stream.write_all(&request.0).await?;
        let body = loop {
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the gateway hung up"
            );
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = std::str::from_utf8(&self.buffer[..body])?;
        if !head.starts_with("HTTP/1.1 2") {
            bail!("refused: {}", head.lines().next().unwrap_or_default());
        }
        let length: usize = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .context("an answer without a length")?
            .parse()?;
        while self.buffer.len() < body + length {
            ensure!(
                self.stream.read_buf(&mut self.buffer).await? > 0,
                "the gateway hung up"
            );
        }
        Ok(body)
    }
}
