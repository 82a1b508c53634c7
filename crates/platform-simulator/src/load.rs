//! Publishes posts on Bluesky at a rate, to measure the cost of reading them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{BLUESKY, NewPost, Simulator};

const TICK: Duration = Duration::from_millis(10);
const AUTHORS: u64 = 2_000;

/// Publishes until dropped. Posts are numbered from 0: `load 17: …`.
pub struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Load {
    /// Publishes `per_second` posts in each second.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(simulator: &Simulator, per_second: u64) -> io::Result<Self> {
        let world = simulator.world();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("stream-load".to_owned())
            .spawn(move || {
                let begin = Instant::now();
                let mut number = 0;
                while !stopped.load(Ordering::Relaxed) {
                    let elapsed = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let due = elapsed.saturating_mul(per_second) / 1_000;
                    world.stream((number..due).map(post).collect());
                    number = number.max(due);
                    thread::sleep(TICK);
                }
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn post(number: u64) -> NewPost {
    NewPost {
        platform: BLUESKY.to_owned(),
        title: "A story about customer relations".to_owned(),
        text: Some(format!(
            "load {number}: has anybody moved from one CRM to another this year? Ours costs twice as much as it \
             did, and the export gives half of what we put in. What do you all use, and does it stay up?"
        )),
        author: format!("author{}", number % AUTHORS),
        url: number
            .is_multiple_of(4)
            .then(|| format!("https://example.com/stories/{number}")),
        ..NewPost::default()
    }
}
