//! Which log lines are written.

use tracing_subscriber::EnvFilter;

use super::setting::Setting;

/// A level or directives of `tracing`, known to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn to_env_filter(&self) -> EnvFilter {
        // Libraries that tell what only they care for, or, as lapin does, call an error what the bus
        // mends and says itself, and print whole messages. Whoever names them hears them.
        EnvFilter::new(format!(
            "actix_server=warn,actix_http=off,lapin=off,{}",
            self.0
        ))
    }
}

impl Default for LogFilter {
    fn default() -> Self {
        Self("info".to_owned())
    }
}

impl Setting for LogFilter {
    const FORM: &'static str = "a level or directives such as \"info,scanner=debug\"";

    fn from_text(text: &str) -> Result<Self, String> {
        // A lone word that is no level would be taken for a target, and silence everything else.
        let lone_word = !text.contains(['=', ',', '[']);
        if lone_word && text.parse::<tracing::level_filters::LevelFilter>().is_err() {
            return Err(format!("expected {}, not `{text}`", Self::FORM));
        }
        EnvFilter::try_new(text)
            .map(|_| Self(text.to_owned()))
            .map_err(|error| format!("expected {}: {error}", Self::FORM))
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.0)
    }
}
