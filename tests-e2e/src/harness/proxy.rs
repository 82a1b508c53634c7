//! A network that can be slow, stall or be cut: forwards connections from its port to another one.

use std::{
    io,
    sync::Mutex,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::sleep,
};

use super::free_address;

/// How long the port of a cut proxy may remain in use.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Proxy {
    address: String,
    target: Mutex<String>,
    flow: watch::Sender<Flow>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of faults that keep the port closed.
    cuts: u32,
    carrying: Option<JoinHandle<()>>,
}

/// Handling of bytes, in both directions.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Flow {
    Free,
    /// Delays each chunk of up to 16 KiB by this time, which also lowers the throughput.
    Late(Duration),
    /// Forwards nothing, and reports no error.
    Held,
    /// Does the same on connections from before this time. Later ones are free.
    HeldBefore(Instant),
}

impl Flow {
    /// Returns true for a connection that was opened at `begin`.
    fn holds(self, begin: Instant) -> bool {
        match self {
            Self::Free | Self::Late(_) => false,
            Self::Held => true,
            Self::HeldBefore(time) => begin < time,
        }
    }
}

impl Proxy {
    /// `target` is `host:port`.
    pub(crate) async fn start(target: &str) -> Self {
        let proxy = Self {
            address: free_address(),
            target: Mutex::new(target.to_owned()),
            flow: watch::Sender::new(Flow::Free),
            state: Mutex::default(),
        };
        proxy.open().await;
        proxy
    }

    /// Returns `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn set(&self, flow: Flow) {
        self.flow.send_replace(flow);
    }

    /// Sets the target of new connections after the next [`Self::mend`].
    pub(crate) fn aim(&self, target: &str) {
        target.clone_into(&mut self.target.lock().unwrap());
    }

    /// Closes the port and every connection, until each cut is mended.
    pub(crate) fn cut(&self) {
        let mut state = self.state.lock().unwrap();
        state.cuts += 1;
        if let Some(carrying) = state.carrying.take() {
            carrying.abort();
        }
    }

    /// Ends one cut; the port opens again when there is no other.
    pub(crate) async fn mend(&self) {
        let is_whole = {
            let mut state = self.state.lock().unwrap();
            state.cuts -= 1;
            state.cuts == 0
        };
        if is_whole {
            self.open().await;
        }
    }

    async fn open(&self) {
        let deadline = Instant::now() + PATIENCE;
        let listener = loop {
            match TcpListener::bind(&self.address).await {
                Ok(listener) => break listener,
                // The task that carried before may not have ended yet.
                Err(error) => assert!(Instant::now() < deadline, "{}: {error}", self.address),
            }
            sleep(Duration::from_millis(10)).await;
            if self.state.lock().unwrap().carrying.is_some() {
                return;
            }
        };
        let target = self.target.lock().unwrap().clone();
        let flow = self.flow.subscribe();
        let carry = tokio::spawn(async move {
            // Dropped with this task, together with all connections.
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let (target, flow) = (target.clone(), flow.clone());
                connections.spawn(async move {
                    if let Ok(far) = TcpStream::connect(&target).await {
                        let _ = both_ways(near, far, &flow).await;
                    }
                });
                // Removes connections that have ended.
                while connections.try_join_next().is_some() {}
            }
        });
        let mut state = self.state.lock().unwrap();
        if state.cuts > 0 {
            // Cut meanwhile.
            carry.abort();
        } else {
            state.carrying = Some(carry);
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

async fn both_ways(
    near: TcpStream,
    far: TcpStream,
    flow: &watch::Receiver<Flow>,
) -> io::Result<()> {
    let begin = Instant::now();
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    tokio::try_join!(
        carry(from_near, to_far, flow.clone(), begin),
        carry(from_far, to_near, flow.clone(), begin),
    )?;
    Ok(())
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut flow: watch::Receiver<Flow>,
    begin: Instant,
) -> io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        let now = *flow.borrow_and_update();
        match now {
            Flow::Free => {}
            Flow::Late(by) => sleep(by).await,
            Flow::Held | Flow::HeldBefore(_) => {
                // The proxy is gone when no sender is left.
                let _ = flow.wait_for(|flow| !flow.holds(begin)).await;
            }
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&bytes[..count]).await?;
    }
}
