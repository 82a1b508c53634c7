//! Computations of a customer's size that others must not wait for.

use std::{sync::LazyLock, thread::available_parallelism};

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

/// A background thread gets a third of the processor time of a normal thread that needs the same processor. With less,
/// documents wait for minutes on a busy machine.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Has one thread less than there are processors, so that one is left to what cannot wait.
static THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, usize::from);
    Builder::new_multi_thread()
        .worker_threads(processors.saturating_sub(1).max(1))
        .thread_name("background")
        .on_thread_start(lower_priority)
        .build()
        .expect("threads can be started")
});

/// Runs `work` on a thread of low priority.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    THREADS.spawn(async { work() })
}

/// Runs `work` on a thread where it delays nothing else, of low priority if it `is_long`.
pub fn spawn_blocking<T: Send + 'static>(
    is_long: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    if is_long {
        spawn(work)
    } else {
        tokio::task::spawn_blocking(work)
    }
}

fn lower_priority() {
    // Elsewhere the call would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%error, "background work has the priority of all other work");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

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
        for (is_long, expected) in [(false, before), (true, low)] {
            let found = super::spawn_blocking(is_long, || getpriority_process(None).unwrap());
            assert_eq!(found.await.unwrap(), expected);
        }
    }
}
