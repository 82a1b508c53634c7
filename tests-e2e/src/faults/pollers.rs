//! Clients that poll each Manager's Scans by `createTime`, throughout the faults.
//!
//! They keep only the last `createTime`, and each request may go to another gateway. So they see every Scan exactly once and
//! in order only if Scans become visible in the order of their times, no matter which replicas write them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::Method;
use tokio::{task::JoinHandle, time::sleep};
use url::form_urlencoded::byte_serialize;

use super::{fleet::Fleet, load::Watching};
use crate::harness::{LOSS, api::Api};

const PAGE: &str = "100";
const PAUSE: Duration = Duration::from_millis(400);

/// One running client for each Manager.
pub(super) struct Pollers {
    ending: Arc<AtomicBool>,
    tasks: Mutex<Vec<JoinHandle<Vec<String>>>>,
}

impl Pollers {
    pub(super) fn start(fleet: &Fleet, managers: &[Watching]) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let tasks = managers.iter().map(|watching| {
            let manager = watching.manager["name"].as_str().unwrap().to_owned();
            tokio::spawn(poll(fleet.apis(), manager, Arc::clone(&ending)))
        });
        let tasks = Mutex::new(tasks.collect());
        Self { ending, tasks }
    }

    /// Waits until the clients see nothing new; returns the names of the Scans that each of them saw, in order.
    pub(super) async fn finish(&self) -> Vec<Vec<String>> {
        self.ending.store(true, Ordering::SeqCst);
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap());
        let mut seen = Vec::new();
        for task in tasks {
            seen.push(task.await.unwrap());
        }
        seen
    }
}

async fn poll(apis: Vec<Api>, manager: String, ending: Arc<AtomicBool>) -> Vec<String> {
    let (mut last, mut seen) = (String::new(), Vec::new());
    for api in apis.iter().cycle() {
        // Read before the page: after the last Scan, one more empty page ends it.
        let is_ending = ending.load(Ordering::SeqCst);
        let mut path = format!("/v1/{manager}/scans?orderBy=createTime%20asc&pageSize={PAGE}");
        if !last.is_empty() {
            let filter = format!("createTime > \"{last}\"");
            path.push_str("&filter=");
            path.extend(byte_serialize(filter.as_bytes()));
        }
        let answer = api.try_request(Method::GET, &path, &[], None).await;
        // Requests that wait for the database count as answers in flight, of which an account has only so many.
        let Some(answer) = answer.filter(|answer| ![429, 503].contains(&answer.status)) else {
            sleep(PAUSE).await;
            continue;
        };
        let page = answer.json();
        assert_eq!(answer.status, 200, "{page}");
        let scans = page["scans"].as_array().unwrap();
        if scans.is_empty() && is_ending {
            return seen;
        }
        for scan in scans {
            let time = scan["createTime"].as_str().unwrap();
            assert!(time > last.as_str(), "{LOSS}{time} comes after {last}");
            time.clone_into(&mut last);
            seen.push(scan["name"].as_str().unwrap().to_owned());
        }
        if scans.is_empty() {
            sleep(PAUSE).await;
        }
    }
    unreachable!("there are gateways")
}
