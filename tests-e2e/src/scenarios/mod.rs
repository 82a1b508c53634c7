//! The tests. Their names say what the service promises.

mod canary;
mod command_line;
mod crashes;
mod customer_day;
mod delivery;
mod demo;
mod diff;
mod drains;
mod idle;
mod kills;
mod listening;
mod quickstart;
mod receivers;
mod start;
mod support;
mod telemetry;
mod tracing;

use std::sync::Arc;

use crate::{Kind, Shared, suite::Test};

/// Returns whether scenarios with a long form run it.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
fn are_large() -> bool {
    std::env::var_os("EARSHOT_LARGE_TESTS").is_some_and(|value| value == "1")
}

/// Returns the scenarios in the order of execution: those that kill processes come last.
pub(crate) fn all(shared: &Arc<Shared>) -> Vec<Test> {
    let kind = shared.kind;
    let mut tests = vec![
        shared.test_alone("invalid_setting_is_named_at_start", async move || {
            start::wrong_settings(kind)
        }),
        shared.test_alone("missing_database_is_named_at_start", async move || {
            start::missing_database(kind).await;
        }),
        shared.test_alone("port_in_use_is_named_at_start", async move || {
            start::busy_port(kind)
        }),
        shared.test_alone("wrong_usage_exits_2", async move || {
            start::wrong_usage(kind)
        }),
        shared.test_alone("check_config_changes_nothing", async move || {
            start::check_config(kind);
        }),
    ];
    if kind == Kind::Dev {
        tests.push(shared.test_alone("idle_memory_stays_small", idle::memory));
        tests.push(shared.test_alone("demo_shows_scans", demo::run));
        let name = "the_quickstart_of_readme_prints_a_webhook";
        tests.push(shared.test_alone(name, quickstart::run));
        let name = "command_line_covers_the_api";
        tests.push(shared.test(name, command_line::run));
        let name = "diff_shows_which_posts_are_gained_and_lost";
        tests.push(shared.test(name, diff::run));
        let name = "sample_receivers_accept_genuine_requests_once";
        tests.push(shared.test(name, receivers::run));
    }
    tests.extend([
        shared.test("page_leads_to_scans_of_relevant_posts", customer_day::run),
        shared.test(
            "hanging_receiver_is_cut_off_and_retried_end_to_end",
            delivery::hanging,
        ),
    ]);
    if kind == Kind::Dev {
        tests.push(shared.test("killed_process_loses_nothing", crashes::run));
    } else {
        let name = "request_to_webhook_is_one_trace";
        tests.push(shared.test(name, tracing::run));
        let name = "secrets_appear_in_no_output";
        tests.push(shared.test_alone(name, canary::run));
        let name = "draining_services_lose_and_repeat_nothing";
        tests.push(shared.test(name, drains::run));
        let name = "listen_misses_and_repeats_nothing_through_interruptions";
        tests.push(shared.test(name, listening::run));
        let name = "kills_at_random_moments_lose_no_delivery";
        tests.push(shared.test(name, kills::run));
        let name = "metrics_equal_the_reference";
        tests.push(shared.test(name, telemetry::metrics));
    }
    tests.push(
        shared.test("sigterm_ends_the_service_cleanly", async |stack: &_| {
            crate::harness::Stack::terminate(stack);
        }),
    );
    tests
}
