//! Runs commands side by side, and prints the output of each when it ends.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};

pub(super) struct Job {
    pub(super) name: String,
    pub(super) command: Command,
}

/// Runs jobs in this order, `lanes` at a time, and returns the names of those that fail. After a failure no other job
/// starts, unless `keep_going` returns true then.
///
/// `run` returns true if the command succeeds. Output is kept in the directory `logs`.
pub(super) fn run(
    jobs: Vec<Job>,
    lanes: usize,
    keep_going: impl Fn() -> bool + Sync,
    logs: &Path,
    run: impl Fn(Command) -> Result<bool> + Sync,
) -> Result<Vec<String>> {
    fs::create_dir_all(logs).with_context(|| format!("make {}", logs.display()))?;
    let jobs = Mutex::new(VecDeque::from(jobs));
    let failed = Mutex::new(Vec::new());
    let lane = || -> Result<()> {
        loop {
            let next = lock(&jobs).pop_front();
            let Some(job) = next else {
                return Ok(());
            };
            if !one(&job.name, job.command, logs, &run)? {
                lock(&failed).push(job.name);
                if !keep_going() {
                    lock(&jobs).clear();
                }
            }
        }
    };
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(lane)).collect();
        lanes.into_iter().try_for_each(|lane| {
            lane.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })?;
    Ok(failed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn one(
    name: &str,
    mut command: Command,
    logs: &Path,
    run: impl Fn(Command) -> Result<bool>,
) -> Result<bool> {
    let log = logs.join(name.replace(' ', "_"));
    let output = File::create(&log).with_context(|| format!("make {}", log.display()))?;
    command.stdout(output.try_clone()?).stderr(output);
    let begin = Instant::now();
    let succeeded = run(command)?;
    let end = if succeeded { "passed" } else { "FAILED" };
    let output = fs::read(&log).with_context(|| format!("read {}", log.display()))?;
    // In one piece, because others print too.
    println!(
        "\n{}\n==> {name}: {end} after {:.0?}",
        String::from_utf8_lossy(&output).trim(),
        begin.elapsed()
    );
    Ok(succeeded)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn jobs(names: &[&str]) -> Vec<Job> {
        let job = |name: &&str| Job {
            name: (*name).to_owned(),
            command: Command::new(name),
        };
        names.iter().map(job).collect()
    }

    fn logs() -> std::path::PathBuf {
        crate::cargo::target_dir().unwrap().join("test-queue")
    }

    #[test]
    fn concurrent_jobs_are_limited_to_the_number_of_lanes() {
        // Each waits for another one: with one lane this would not end.
        let (pairs, running, most) = (Barrier::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let failed = run(
            jobs(&["a", "b", "c", "d"]),
            2,
            || false,
            &logs(),
            |_| {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                pairs.wait();
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(true)
            },
        );
        assert!(failed.unwrap().is_empty());
        assert_eq!(most.into_inner(), 2);
    }

    #[test]
    fn no_job_starts_after_a_failure_unless_wanted() {
        for (keep_going, expected) in [(false, 2), (true, 3)] {
            let started = AtomicUsize::new(0);
            let failed = run(
                jobs(&["a", "bad", "c"]),
                1,
                || keep_going,
                &logs(),
                |command| {
                    started.fetch_add(1, Ordering::SeqCst);
                    Ok(command.get_program() != "bad")
                },
            );
            assert_eq!(failed.unwrap(), ["bad"]);
            assert_eq!(started.into_inner(), expected);
        }
    }
}
