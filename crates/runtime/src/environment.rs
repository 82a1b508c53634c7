//! The only place that reads environment variables.

/// All variables of this process, except those that are not UTF-8.
pub fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// One of the standard `OTEL_*` variables, which are not settings of ours.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads variables"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
