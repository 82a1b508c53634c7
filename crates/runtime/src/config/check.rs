//! Rules that bounds of a single number cannot say.

use std::{collections::BTreeSet, time::Duration};

use secrecy::ExposeSecret;
use url::Url;

use super::{reader::Reader, sections::Config};

const MAX_RETRIES: usize = 100;
const MAX_RETRY_WAIT: Duration = Duration::from_secs(30 * 86_400);

/// Reports whatever of the settings does not go together.
pub(super) fn check(config: &Config, reader: &mut Reader) {
    let scheme_of = |url: &str| url.split_once(':').map(|(scheme, _)| scheme.to_owned());

    let url = config.database.url.expose_secret();
    let scheme = scheme_of(url);
    if !url.is_empty() && !matches!(scheme.as_deref(), Some("postgres" | "postgresql")) {
        reader.reject(
            "database.url",
            "expected a URL that begins with postgres://",
        );
    }
    let url = config.bus.url.expose_secret();
    let scheme = scheme_of(url);
    let is_amqp = matches!(scheme.as_deref(), Some("amqp" | "amqps")) && url.contains("://");
    if !url.is_empty() && !is_amqp && !config.bus.is_in_process() {
        let reason = "expected a URL that begins with amqp:// or amqps://, or `in-process:`";
        reader.reject("bus.url", reason);
    } else if let (true, Err(error)) = (is_amqp, Url::parse(url)) {
        reader.reject("bus.url", format!("not a URL: {error}"));
    }

    let mut ids = BTreeSet::new();
    for key in &config.secrets.encryption_keys {
        if !ids.insert(key.id()) {
            let reason = format!("two keys have the id `{}`", key.id());
            reader.reject("secrets.encryption_keys", reason);
        }
    }

    let schedule = &config.dispatcher.retry_schedule;
    if schedule.len() > MAX_RETRIES {
        let reason = format!("has more than {MAX_RETRIES} entries");
        reader.reject("dispatcher.retry_schedule", reason);
    }
    if let Some(index) = schedule
        .iter()
        .position(|wait| wait.is_zero() || *wait > MAX_RETRY_WAIT)
    {
        let reason = format!("item {}: must lie between \"1ms\" and \"30d\"", index + 1);
        reader.reject("dispatcher.retry_schedule", reason);
    }
}
