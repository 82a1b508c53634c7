//! OpenAI-compatible endpoints, which are optional.

use std::{ops::RangeInclusive, time::Duration};

use secrecy::SecretString;
use url::Url;

use super::reader::{Reader, Within};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// An OpenAI-compatible endpoint.
#[derive(Debug, Clone)]
pub struct Model {
    pub base_url: Url,
    pub model: String,
    pub api_key: Option<SecretString>,
    pub timeout: Duration,
    pub max_tokens: u32,
}

/// LLM filter: a model that decides on candidate posts, and its budget.
#[derive(Debug, Clone)]
pub struct Judge {
    pub model: Model,
    pub candidate_percent: u32,
    pub max_per_minute: u32,
    pub max_per_manager_per_day: u32,
    pub max_open: u32,
}

/// The differences between the uses of an endpoint.
struct Answers {
    timeout: Duration,
    within: RangeInclusive<Duration>,
    doc: &'static str,
    max_tokens: u32,
}

impl Model {
    pub(super) fn read_if_given(reader: &mut Reader, path: &str) -> Option<Self> {
        reader.section(
            path,
            "Optional: an OpenAI-compatible endpoint that refines the instructions of AUTOMATIC Managers. If it is \
             slow or fails, a compile continues without it.",
        );
        let answers = Answers {
            timeout: 20 * SECOND,
            within: SECOND..=MINUTE,
            doc: "Time limit for one answer. A compile takes at most this much longer.",
            max_tokens: 1_500,
        };
        Self::read(reader, path, answers)
    }

    fn read(reader: &mut Reader, path: &str, answers: Answers) -> Option<Self> {
        let given = reader.has_section(path);
        let base_url = reader.required(
            path,
            "base_url",
            "The address without `/chat/completions`. It may be in a private network; redirects are \
             not followed.",
            given,
        );
        let model = reader.required(path, "model", "The endpoint's name for the model.", given);
        let api_key = reader.optional(
            path,
            "api_key",
            "The bearer token, if the endpoint requires one.",
        );
        let (mut timeout, mut max_tokens) = (answers.timeout, answers.max_tokens);
        reader.read(
            &format!("{path}.timeout"),
            answers.doc,
            &mut timeout,
            Some(Within::of(answers.within)),
        );
        reader.read(
            &format!("{path}.max_tokens"),
            "Maximum number of tokens in one answer.",
            &mut max_tokens,
            Some(Within::of(64..=32_000)),
        );
        Some(Self {
            base_url: base_url?,
            model: model?,
            api_key,
            timeout,
            max_tokens,
        })
    }
}

impl Judge {
    pub(super) fn read_if_given(reader: &mut Reader, path: &str) -> Option<Self> {
        reader.section(
            path,
            "Optional: the LLM filter. An OpenAI-compatible endpoint decides on the candidate posts of Managers with a \
             focus, most uncertain first. The threshold decides on posts without an answer. The limits apply to each \
             replica.",
        );
        let answers = Answers {
            timeout: 3 * SECOND,
            within: Duration::from_millis(100)..=8 * SECOND,
            doc: "Time limit for one answer. A poll with candidates takes at most twice this time longer.",
            max_tokens: 100,
        };
        let model = Model::read(reader, path, answers);
        let mut number = |key: &str, doc: &str, default: u32, within: RangeInclusive<u32>| {
            let mut number = default;
            let key = format!("{path}.{key}");
            reader.read(&key, doc, &mut number, Some(Within::of(within)));
            number
        };
        let candidate_percent = number(
            "candidate_percent",
            "The lowest score of a candidate, as a percentage of its Manager's threshold. With 100 the model only \
             rejects posts.",
            33,
            5..=100,
        );
        let max_per_minute = number(
            "max_per_minute",
            "Maximum number of questions per minute.",
            60,
            1..=100_000,
        );
        let max_per_manager_per_day = number(
            "max_per_manager_per_day",
            "Maximum number of questions for one Manager per day.",
            20,
            1..=100_000,
        );
        let max_open = number(
            "max_open",
            "Maximum number of concurrent questions.",
            4,
            1..=256,
        );
        Some(Self {
            model: model?,
            candidate_percent,
            max_per_minute,
            max_per_manager_per_day,
            max_open,
        })
    }
}
