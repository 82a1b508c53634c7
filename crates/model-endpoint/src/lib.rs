//! Asks the operator's OpenAI-compatible endpoint, which is optional.
//!
//! A question gets one answer, in JSON with the caller's type; any other form counts as a failure. A question
//! is limited in time, its answer in tokens and bytes, and there are no retries: the caller always has an
//! alternative. Each question is counted by its outcome.
//!
//! After a failure of the endpoint it is not asked for a while, so that it costs few deadlines and not one per
//! Manager. The endpoint serves all accounts, so a question that it refuses or answers in another form fails alone:
//! a post or a page of one account must not pause it for the others ([`Health`]).
//!
//! The material is sent as one JSON value, separate from the instruction, so that no text can end its
//! quotation. A model may still obey such a text: callers check its output like any other untrusted input.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::error_chain;
use platforms::{Direct, FetchError, FetchLimits, Fetched};
use runtime::config::Model;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::Instant;
use url::Url;

const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Pause after a failure; longer if the endpoint asks for it.
const PAUSE: Duration = Duration::from_secs(15);
/// Pause after an error that only the operator can fix.
const LONG_PAUSE: Duration = Duration::from_secs(60);
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Timeouts in a row that pause the endpoint. A single one may be due to the question.
const TIMEOUTS: u32 = 2;

runtime::metrics! {
    static DURATION: HistogramVec = "earshot_model_request_duration_seconds",
        "Time of a question to the model endpoint", ["purpose"],
        buckets: &[0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0];
    static REQUESTS: IntCounterVec = "earshot_model_requests_total",
        "Questions to the model endpoint", ["purpose", "outcome"];
}

/// Purpose of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Refining instructions.
    Compile,
    /// LLM filter: deciding on a post.
    Judge,
}

impl Purpose {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compile => "compile",
            Self::Judge => "judge",
        }
    }
}

/// Reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("paused after a failure")]
    Paused,
    #[error("the budget is spent")]
    OverBudget,
    #[error("too many questions are open")]
    Busy,
    #[error("no answer within {after:?}")]
    Timeout { after: Duration },
    #[error("answered 429")]
    RateLimited { retry_after: Option<Duration> },
    #[error("answered {status}")]
    Refused { status: u16 },
    #[error("{reason}")]
    Unreachable { reason: String },
    #[error("not an answer to the question: {reason}")]
    Invalid { reason: String },
}

impl Failure {
    /// The outcome in metrics.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::OverBudget => "over_budget",
            Self::Busy => "busy",
            Self::Timeout { .. } => "timeout",
            Self::RateLimited { .. } => "rate_limited",
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::Invalid { .. } => "invalid",
        }
    }

    fn invalid(reason: impl ToString) -> Self {
        Self::Invalid {
            reason: reason.to_string(),
        }
    }

    /// The pause after this failure. An answer of the wrong form says nothing about the next one, and neither does
    /// the refusal of a question, because of its content (400, 422) or its length (400, 413).
    fn pause(&self) -> Option<Duration> {
        match self {
            Self::Paused
            | Self::OverBudget
            | Self::Busy
            | Self::Invalid { .. }
            | Self::Refused {
                status: 400 | 413 | 422,
            } => None,
            Self::Timeout { .. } | Self::Unreachable { .. } => Some(PAUSE),
            Self::RateLimited { retry_after } => {
                Some(retry_after.unwrap_or(PAUSE).clamp(PAUSE, MAX_PAUSE))
            }
            Self::Refused { status: 500.. } => Some(PAUSE),
            Self::Refused { .. } => Some(LONG_PAUSE),
        }
    }
}

/// State of the endpoint according to its last answers.
#[derive(Default)]
struct Health {
    paused_until: Option<Instant>,
    /// Timeouts in a row.
    timeouts: u32,
    /// True if a question was refused since the last answer.
    has_refused: bool,
}

impl Health {
    fn is_paused(&self, now: Instant) -> bool {
        self.paused_until.is_some_and(|until| now < until)
    }

    /// Logs once that the endpoint fails, once that it answers again, and the first of several refused questions. Only
    /// an answer ends a pause and the count of timeouts: refusals may come from a proxy.
    fn record(&mut self, failure: Option<&Failure>, now: Instant) {
        let Some(failure) = failure else {
            if self.paused_until.is_some() {
                tracing::info!("the model endpoint answers again");
            }
            *self = Self::default();
            return;
        };
        if matches!(failure, Failure::Timeout { .. }) {
            self.timeouts = self.timeouts.saturating_add(1);
            if self.timeouts < TIMEOUTS {
                return;
            }
        }
        if let Some(pause) = failure.pause() {
            if self.paused_until.replace(now + pause).is_none() {
                tracing::warn!(reason = %failure, "the model endpoint fails: working without it");
            }
        } else if matches!(failure, Failure::Refused { .. }) && !self.has_refused {
            self.has_refused = true;
            tracing::info!(reason = %failure, "the model endpoint refused a question");
        }
    }
}

/// The endpoint of the configuration.
pub struct Endpoint {
    client: Direct,
    url: Url,
    model: String,
    api_key: Option<SecretString>,
    timeout: Duration,
    max_tokens: u32,
    health: Mutex<Health>,
}

impl Endpoint {
    pub fn new(settings: &Model) -> Self {
        let mut url = settings.base_url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
        Self {
            client: Direct::new(None)
                .expect("user agent and certificate authorities are constants"),
            url,
            model: settings.model.clone(),
            api_key: settings.api_key.clone(),
            timeout: settings.timeout,
            max_tokens: settings.max_tokens,
            health: Mutex::default(),
        }
    }

    /// Asks what `instruction` says about `material`, and parses the answer as a `T`. Returns within the
    /// configured timeout.
    ///
    /// # Errors
    /// If there is no such answer; the reason is already counted.
    pub async fn complete<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        instruction: &str,
        material: &Value,
    ) -> Result<T, Failure> {
        let answer = if self.is_paused() {
            Err(Failure::Paused)
        } else {
            let _timer = DURATION
                .with_label_values(&[purpose.as_str()])
                .start_timer();
            let answer = self.exchange(instruction, material).await;
            self.health().record(answer.as_ref().err(), Instant::now());
            answer.and_then(|content| read(&content))
        };
        let outcome = answer.as_ref().err().map_or("ok", Failure::word);
        count(purpose, outcome);
        answer
    }

    /// Counts a question that its caller decided not to ask.
    pub fn count_skipped(&self, purpose: Purpose, why: &Failure) {
        count(purpose, why.word());
    }

    /// Returns the text that the model wrote.
    async fn exchange(&self, instruction: &str, material: &Value) -> Result<String, Failure> {
        let body = json!({
            "model": self.model,
            "messages": [
                {"role": "system", "content": instruction},
                {"role": "user", "content": material.to_string()},
            ],
            "temperature": 0,
            "max_tokens": self.max_tokens,
            "response_format": {"type": "json_object"},
        });
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "application/json"),
        ];
        let key = self.api_key.as_ref();
        let bearer = key.map(|key| format!("Bearer {}", key.expose_secret()));
        headers.extend(
            bearer
                .iter()
                .map(|bearer| ("authorization", bearer.as_str())),
        );
        let limits = FetchLimits {
            max_bytes: MAX_ANSWER_BYTES,
            timeout: self.timeout,
        };
        let body = body.to_string();
        let answer = self.client.post(&self.url, &headers, body, &limits).await;
        content(&answer.map_err(|error| failure(&error, self.timeout))?)
    }

    /// The current pause, if any: callers need not wait for it.
    pub fn pause(&self) -> Option<Failure> {
        self.is_paused().then_some(Failure::Paused)
    }

    fn is_paused(&self) -> bool {
        self.health().is_paused(Instant::now())
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(purpose: Purpose, outcome: &str) {
    REQUESTS
        .with_label_values(&[purpose.as_str(), outcome])
        .inc();
}

fn failure(error: &FetchError, after: Duration) -> Failure {
    match error {
        FetchError::Timeout => Failure::Timeout { after },
        FetchError::TooLarge { .. } => Failure::invalid(error),
        other => Failure::Unreachable {
            reason: error_chain(other),
        },
    }
}

/// The part of the protocol's response that we use.
#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
}

fn content(answer: &Fetched) -> Result<String, Failure> {
    match answer.status {
        200..=299 => {}
        429 => {
            return Err(Failure::RateLimited {
                retry_after: answer.retry_after(),
            });
        }
        status => return Err(Failure::Refused { status }),
    }
    let completion: Completion = serde_json::from_slice(&answer.body).map_err(Failure::invalid)?;
    let choice = completion.choices.into_iter().next();
    choice
        .and_then(|choice| choice.message.content)
        .ok_or_else(|| Failure::invalid("no content"))
}

/// Plain JSON, or JSON in the code fence that some models add.
fn read<T: DeserializeOwned>(content: &str) -> Result<T, Failure> {
    let content = content.trim();
    let fenced = content
        .strip_prefix("```json")
        .or_else(|| content.strip_prefix("```"))
        .and_then(|rest| rest.strip_suffix("```"));
    serde_json::from_str(fenced.unwrap_or(content)).map_err(Failure::invalid)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::{Failure, Health, LONG_PAUSE, MAX_PAUSE, PAUSE, read};

    const TIMEOUT: Failure = Failure::Timeout {
        after: Duration::from_secs(3),
    };

    #[test]
    fn answer_is_json_with_or_without_a_code_fence() {
        for text in [
            "{\"a\":1}",
            " {\"a\":1}\n",
            "```json\n{\"a\":1}\n```",
            "```{\"a\":1}```",
        ] {
            assert_eq!(read::<Value>(text).unwrap(), json!({"a": 1}), "{text}");
        }
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "Sure! {\"a\":1}",
            "{\"a\":1} Done.",
            "```json {\"a\":1}",
            &deep,
        ] {
            assert_eq!(read::<Value>(text).unwrap_err().word(), "invalid");
        }
    }

    #[test]
    fn pauses_are_limited_regardless_of_retry_after() {
        for (asked, pause) in [(None, PAUSE), (Some(0), PAUSE), (Some(1 << 40), MAX_PAUSE)] {
            let retry_after = asked.map(Duration::from_secs);
            assert_eq!(Failure::RateLimited { retry_after }.pause(), Some(pause));
        }
        assert_eq!(Failure::invalid("x").pause(), None);
    }

    #[test]
    fn refused_questions_do_not_pause_the_endpoint() {
        let (mut health, now) = (Health::default(), Instant::now());
        for status in [400, 413, 422] {
            health.record(Some(&Failure::Refused { status }), now);
            assert!(!health.is_paused(now), "{status}");
        }
        for (status, pause) in [
            (401, LONG_PAUSE),
            (403, LONG_PAUSE),
            (404, LONG_PAUSE),
            (500, PAUSE),
            (503, PAUSE),
        ] {
            let mut health = Health::default();
            health.record(Some(&Failure::Refused { status }), now);
            assert!(health.is_paused(now), "{status}");
            assert!(!health.is_paused(now + pause), "{status}");
        }
    }

    #[test]
    fn timeouts_pause_the_endpoint_only_in_a_row() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.record(Some(&TIMEOUT), now);
        health.record(None, now);
        health.record(Some(&TIMEOUT), now);
        // It does not say that the model answers.
        health.record(Some(&Failure::Refused { status: 400 }), now);
        assert!(!health.is_paused(now));
        health.record(Some(&TIMEOUT), now);
        assert!(health.is_paused(now));
        // After the pause, the next one suffices.
        let later = now + PAUSE;
        assert!(!health.is_paused(later));
        health.record(Some(&TIMEOUT), later);
        assert!(health.is_paused(later));
    }

    #[test]
    fn single_timeout_does_not_end_a_pause() {
        let (mut health, now) = (Health::default(), Instant::now());
        health.record(Some(&Failure::Refused { status: 500 }), now);
        health.record(Some(&TIMEOUT), now);
        assert!(health.is_paused(now));
        health.record(None, now);
        assert!(!health.is_paused(now));
    }
}
