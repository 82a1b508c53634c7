//! Filter of the log lines.

use tracing_subscriber::EnvFilter;

use super::setting::Setting;

/// A level or directives of `tracing`, checked to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn to_env_filter(&self) -> EnvFilter {
        // Quiets libraries that log internal details. lapin, for example, logs errors that the bus handles and
        // logs itself, and prints whole messages; rmcp prints what clients send. A filter that names a library
        // overrides this.
        EnvFilter::new(format!(
            "actix_server=warn,actix_http=off,lapin=off,rmcp=off,{}",
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
        // A single word that is not a level would count as a target, and silence everything else.
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
