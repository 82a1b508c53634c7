//! Computations of a customer's size that others must not wait for.

use std::{sync::LazyLock, thread::available_parallelism};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

/// A background thread gets a tenth of the processor time of a normal thread that needs the same processor.
const NICE: i32 = 10;
/// A thread for documents gets a third. With less, documents wait for minutes on a busy machine.
const DOCUMENT_NICE: i32 = 5;

static THREADS: LazyLock<Runtime> = LazyLock::new(|| threads("background", 0, NICE));
/// Documents have their own threads, because no other work can wait until they are read. They leave a processor to it.
static DOCUMENT_THREADS: LazyLock<Runtime> =
    LazyLock::new(|| threads("documents", 1, DOCUMENT_NICE));

/// Starts a thread for each processor, except for some.
fn threads(name: &str, except: usize, nice: i32) -> Runtime {
    let processors = available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(processors.saturating_sub(except).max(1))
        .thread_name(name)
        .on_thread_start(move || lower_priority(nice))
        .build()
        .expect("threads can be started")
}

/// Runs `work` on a thread of low priority.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    THREADS.spawn(async { work() })
}

/// Reads a document on a thread where that delays nothing else, of low priority if it `is_long`.
pub fn spawn_blocking<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    if is_long {
        DOCUMENT_THREADS.spawn(async { work() })
    } else {
        tokio::task::spawn_blocking(work)
    }
}

fn lower_priority(nice: i32) {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, nice) {
        tracing::debug!(%error, "background work has the priority of all other work");
    }
    // Elsewhere the call would change the priority of the whole process.
    #[cfg(not(target_os = "linux"))]
    let _ = nice;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{sync::mpsc, thread::available_parallelism, time::Duration};

    use rustix::process::getpriority_process;
    use tokio::time::timeout;

    #[tokio::test]
    async fn only_background_threads_have_a_low_priority() {
        let before = getpriority_process(None).unwrap();
        let (low, id) = super::spawn(|| {
            (
                getpriority_process(None).unwrap(),
                std::thread::current().id(),
            )
        })
        .await
        .unwrap();
        assert_eq!(low, super::NICE.max(before));
        assert_ne!(id, std::thread::current().id());
        assert_eq!(getpriority_process(None).unwrap(), before);
        let low = super::DOCUMENT_NICE.max(before);
        for (is_long, expected) in [(false, before), (true, low)] {
            let found = super::spawn_blocking(is_long, || getpriority_process(None).unwrap());
            assert_eq!(found.await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn other_work_does_not_wait_behind_documents() {
        let count = available_parallelism().unwrap().get();
        let documents = (0..count).map(|_| {
            let (end, ended) = mpsc::channel::<()>();
            (end, super::spawn_blocking(true, move || ended.recv()))
        });
        let (ends, documents): (Vec<_>, Vec<_>) = documents.unzip();
        let other = timeout(Duration::from_secs(10), super::spawn(|| ())).await;
        other.unwrap().unwrap();
        drop(ends);
        for document in documents {
            assert!(document.await.unwrap().is_err());
        }
    }
}
