//! The configuration of the stacks: three platforms, with faults six, all of them the simulator.

use std::fmt::Write;

/// The platform names that the simulator's ids require.
pub(crate) const HACKER_NEWS: &str = "hackernews";
pub(crate) const LEMMY: &str = "lemmy";
pub(crate) const BLOG: &str = "blog";
pub(crate) const REDDIT: &str = "reddit";
pub(crate) const MASTODON: &str = "mastodon";
pub(crate) const BLUESKY: &str = "bluesky";

/// Short enough that tests need not wait, and long enough that idle stacks do not load the machine.
const POLL_INTERVAL: &str = "200ms";
/// For the six feeds of a fleet, whose eight replicas share two cores with another one.
const FAULTS_POLL_INTERVAL: &str = "500ms";
const RETRY_SCHEDULE: &str =
    r#"["300ms", "600ms", "1s", "1s", "2s", "2s", "5s", "5s", "5s", "10s"]"#;

/// Configuration that both stacks share.
pub(crate) fn common(simulator: &str) -> String {
    format!(
        r#"
[gateway]
rate_limit_per_minute = 1000000
drain_delay = "3s"
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

/// A platform whose feeds customers name by their addresses.
pub(crate) fn customers_feeds(name: &str) -> String {
    format!(
        "[[platforms]]\nname = \"{name}\"\nkind = \"feed\"\nsource = \"FORUM\"\npoll_interval = \"300ms\"\n"
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

/// Configuration of a replica amid faults: three more platforms, and retries for longer than any fault.
///
/// `simulator` is the replica's own way to the platforms. The blog is read at `blogs`, the same for all replicas, because
/// ids of its posts depend on its address.
pub(crate) fn faults(simulator: &str, blogs: &str, database: &str, broker: &str) -> String {
    let retries = format!(
        r#"["300ms", "600ms", "1s", "1s", "2s", {}"5s"]"#,
        r#""5s", "#.repeat(80)
    );
    let mut config = distributed(simulator, database, broker)
        .replace(RETRY_SCHEDULE, &retries)
        .replace(POLL_INTERVAL, FAULTS_POLL_INTERVAL)
        .replace(&format!("{simulator}/feeds"), &format!("{blogs}/feeds"));
    write!(
        config,
        r#"
[[platforms]]
name = "{REDDIT}"
kind = "reddit"
base_url = "{simulator}/reddit"
client_id = "client"
client_secret = "secret"
user_agent = "linux:org.example.earshot:1 (by /u/someone)"
poll_interval = "{FAULTS_POLL_INTERVAL}"
[[platforms]]
name = "{MASTODON}"
kind = "mastodon"
base_url = "{simulator}/mastodon"
poll_interval = "{FAULTS_POLL_INTERVAL}"
[[platforms]]
name = "{BLUESKY}"
kind = "bluesky"
base_url = "{simulator}/bluesky"
items_url = "{simulator}/bluesky"
poll_interval = "{FAULTS_POLL_INTERVAL}"
"#
    )
    .unwrap();
    config
}
