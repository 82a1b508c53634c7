//! A network that can be cut: what comes to its port goes on to another one.

use std::sync::Mutex;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::free_address;

pub(crate) struct Proxy {
    address: String,
    target: String,
    carrying: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// `target` is `host:port`.
    pub(crate) async fn start(target: &str) -> Self {
        let proxy = Self {
            address: free_address(),
            target: target.to_owned(),
            carrying: Mutex::default(),
        };
        proxy.mend().await;
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Closes the port and every connection.
    pub(crate) fn cut(&self) {
        if let Some(carrying) = self.carrying.lock().unwrap().take() {
            carrying.abort();
        }
    }

    /// Opens the port again.
    pub(crate) async fn mend(&self) {
        let listener = TcpListener::bind(&self.address).await.unwrap();
        let target = self.target.clone();
        let carry = tokio::spawn(async move {
            // Dropped with this task, and all that it carries with it.
            let mut connections = JoinSet::new();
            while let Ok((mut near, _)) = listener.accept().await {
                let target = target.clone();
                connections.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(&target).await {
                        let _ = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        *self.carrying.lock().unwrap() = Some(carry);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}
