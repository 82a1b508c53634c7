//! A service without work, on a real backbone.

use backbone::Backbone;
use runtime::Context;
use test_support::{Replica, TestDatabase};

pub(crate) fn backbone(database: &TestDatabase) -> Backbone {
    Backbone::in_process(&test_support::config(
        database,
        store::roles::Service::Scanner,
    ))
    .unwrap()
}

/// Starts a service that waits until it may work, reports that in its health, and works until its shutdown.
pub(crate) fn start(service: &'static str, backbone: Backbone) -> Replica {
    let hosted = backbone.clone();
    Replica::start(service, backbone, move |context: Context| async move {
        let working = context.health.check("working");
        if hosted.ready(&context.shutdown).await {
            working.ok();
        }
        context.shutdown.cancelled().await;
        Ok(())
    })
}

/// The named check: its status and its detail.
pub(crate) fn check(replica: &Replica, name: &str) -> (bool, String) {
    let report = replica.health.report();
    let found = report.checks.into_iter().find(|check| check.name == name);
    found.map_or((false, String::new()), |check| {
        (check.ok, check.detail.unwrap_or_default())
    })
}
