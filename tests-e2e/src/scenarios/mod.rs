//! The tests. Their names say what the service promises.

mod api_errors;
mod apply_errors;
mod canary;
mod command_line;
mod crashes;
mod customer_day;
mod delivery;
mod demo;
mod drains;
mod idle;
mod kills;
mod latency;
mod listening;
mod quickstart;
mod receivers;
mod start;
mod support;
mod telemetry;
mod tracing;

use std::sync::Arc;

use libtest_mimic::Trial;

use crate::{Kind, Shared};

/// Returns whether scenarios with a long form run it.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
fn are_large() -> bool {
    std::env::var_os("EARSHOT_LARGE_TESTS").is_some_and(|value| value == "1")
}

/// Returns the scenarios in the order of execution: those that kill processes come last.
pub(crate) fn all(shared: &Arc<Shared>) -> Vec<Trial> {
    let kind = shared.kind;
    let mut trials = vec![
        shared.trial_alone("a_wrong_setting_is_named", async move || {
            start::wrong_settings(kind)
        }),
        shared.trial_alone("a_missing_database_is_named", async move || {
            start::missing_database(kind).await;
        }),
        shared.trial_alone("a_busy_port_is_named", async move || start::busy_port(kind)),
        shared.trial_alone("wrong_usage_exits_2", async move || {
            start::wrong_usage(kind)
        }),
        shared.trial_alone("check_config_touches_nothing", async move || {
            start::check_config(kind);
        }),
    ];
    if kind == Kind::Dev {
        trials.push(shared.trial_alone("idle_memory_stays_small", idle::memory));
        trials.push(shared.trial_alone("the_demo_shows_scans_within_ten_seconds", demo::run));
        let name = "the_quickstart_of_readme_prints_a_webhook";
        trials.push(shared.trial_alone(name, quickstart::run));
        let name = "the_command_line_does_what_the_api_does";
        trials.push(shared.trial(name, command_line::run));
        let name = "sample_receivers_take_what_is_genuine_once";
        trials.push(shared.trial(name, receivers::run));
    }
    trials.extend([
        shared.trial(
            "a_page_becomes_scans_of_the_posts_that_matter",
            customer_day::run,
        ),
        shared.trial("the_third_try_succeeds", delivery::third_try),
        shared.trial(
            "a_receiver_that_hangs_is_cut_and_tried_again",
            delivery::hanging,
        ),
        shared.trial("a_post_is_delivered_at_once", latency::measure),
        shared.trial("a_page_that_cannot_be_used_is_explained", apply_errors::run),
        shared.trial("malformed_bodies_are_explained", api_errors::malformed),
        shared.trial("strangers_get_nothing", api_errors::strangers),
        shared.trial("test_mode_leaves_nothing_behind", api_errors::test_mode),
        shared.trial("killed_parts_lose_nothing", crashes::run),
    ]);
    if kind == Kind::Distributed {
        let name = "the_way_from_request_to_webhook_is_one_trace";
        trials.push(shared.trial(name, tracing::run));
        let name = "no_secret_is_told";
        trials.push(shared.trial_alone(name, async move || canary::run(kind).await));
        let name = "services_that_drain_lose_nothing_and_repeat_nothing";
        trials.push(shared.trial(name, drains::run));
        let name = "listening_over_a_laptops_day_misses_and_repeats_nothing";
        trials.push(shared.trial(name, listening::run));
        let name = "kills_at_random_moments_lose_no_delivery";
        trials.push(shared.trial(name, kills::run));
    }
    if kind == Kind::Distributed {
        let name = "metrics_are_those_of_the_reference";
        trials.push(shared.trial(name, telemetry::metrics));
    }
    trials.push(shared.trial("sigterm_ends_it_cleanly", async |stack: &_| {
        crate::harness::Stack::terminate(stack);
    }));
    trials
}
