//! The configuration of the stacks: three platforms, all of them the simulator.

use std::fmt::Write;

/// The platform names that the simulator's ids require.
pub(crate) const HACKER_NEWS: &str = "hackernews";
pub(crate) const LEMMY: &str = "lemmy";
pub(crate) const BLOG: &str = "blog";

/// Short enough that tests need not wait, and long enough that idle stacks do not load the machine.
const POLL_INTERVAL: &str = "200ms";
const RETRY_SCHEDULE: &str =
    r#"["300ms", "600ms", "1s", "1s", "2s", "2s", "5s", "5s", "5s", "10s"]"#;

/// Configuration that both stacks share.
pub(crate) fn common(simulator: &str) -> String {
    format!(
        r#"
[gateway]
rate_limit_per_minute = 1000000
drain_delay = "1500ms"
[scanner]
poll_interval_min = "100ms"
backfill = "0s"
[dispatcher]
retry_schedule = {RETRY_SCHEDULE}
[log]
filter = "info"
[[platforms]]
name = "{HACKER_NEWS}"
kind = "hackernews"
base_url = "{simulator}/hackernews/api/v1"
items_url = "{simulator}/hackernews/v0"
poll_interval = "{POLL_INTERVAL}"
[[platforms]]
name = "{LEMMY}"
kind = "lemmy"
base_url = "{simulator}/lemmy"
poll_interval = "{POLL_INTERVAL}"
[[platforms]]
name = "{BLOG}"
kind = "feed"
source = "NETWORK"
base_url = "{simulator}/feeds/blog.rss"
poll_interval = "{POLL_INTERVAL}"
"#
    )
}

/// Additional configuration of the services.
pub(crate) fn distributed(simulator: &str, database: &str, broker: &str) -> String {
    let mut config = common(simulator);
    write!(
        config,
        r#"
[database]
url = "{database}"
[bus]
url = "{broker}"
[secrets]
encryption_keys = ["test:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="]
[outbound]
allow_cidrs = ["127.0.0.0/8", "::1/128"]
allow_http = true
"#
    )
    .unwrap();
    config
}
