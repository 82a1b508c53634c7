//! Computations of a customer's size that others must not wait for.

use std::sync::LazyLock;

use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

/// A background thread gets a tenth of the processor time of a normal thread that needs the same processor.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Has as many threads as there are processors, which do nothing else.
static THREADS: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .thread_name("background")
        .on_thread_start(lower_priority)
        .build()
        .expect("threads can be started")
});

/// Runs `work` on a thread of low priority.
pub fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    THREADS.spawn(async { work() })
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
    }
}
