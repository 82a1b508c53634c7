//! Plans: instructions in the compiled form that decides on posts.
//!
//! Compiling is a pure function of the instructions. The order of terms and duplicates change nothing.

use std::collections::BTreeMap;

use domain::{FeedName, Focus, Instructions, Sensitivity, instructions::NameKind};

use crate::{model, phrase::Readings, text, topic_scale::TopicScale};

/// Percentage of posts about the subject for a name that no ordinary post contains.
pub(crate) const ON_TOPIC_PRIOR: u8 = 50;
/// Number of strongest terms whose mean weight is the unit of a plan's topic score. Missing terms count as zero: a plan
/// with fewer terms is more specific, and each of them says more.
const STRONGEST: usize = 5;

/// Compiled instructions of one Manager.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(crate) rule: Rule,
    /// Heaviest first.
    pub(crate) include: Vec<Term>,
    pub(crate) names: Vec<Name>,
    pub(crate) require: Vec<Vec<Plain>>,
    pub(crate) exclude: Vec<Plain>,
    /// Related words, as stems.
    pub(crate) related: Vec<Plain>,
    /// The customer's offers; weights 0 to 1 in hundredths.
    pub(crate) offers: Vec<Term>,
    feeds: Vec<FeedName>,
}

/// Condition for a match, in addition to groups, exclusions and feeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    /// The probability reaches the threshold, and a term or name occurs. `gate` is the focus whose gate the post must
    /// pass: that of SALES if there is no competitor's name to search for.
    Focus {
        focus: Focus,
        threshold: f64,
        scale: TopicScale,
        gate: Focus,
        /// True if the plan knows what the customer sells.
        has_offers: bool,
    },
    /// The weights of the terms that occur add up to the threshold.
    Sum { threshold: f64 },
    /// The weights of the terms that occur add up to more than zero: no threshold was given.
    AnyTerm,
    /// One of the names occurs: the instructions contain nothing else.
    AnyName,
    /// Only groups and exclusions decide.
    Groups,
}

/// A term that adds to the score.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub(crate) text: String,
    pub(crate) readings: Readings,
    /// With a focus: relative to the plan's strongest terms. Without a focus: as given.
    pub(crate) weight: f64,
}

/// A term without a weight, which either occurs or does not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plain {
    pub(crate) text: String,
    pub(crate) readings: Readings,
}

/// A name and its aliases.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) kind: NameKind,
    pub(crate) spellings: Vec<Spelling>,
    pub(crate) context: Vec<Plain>,
    /// Percentage of ordinary posts with the name that are about the subject.
    pub(crate) on_topic_percent: u8,
    /// Number of ordinary posts with the name, per 10,000.
    pub(crate) ordinary_posts: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spelling {
    pub(crate) text: String,
    pub(crate) readings: Readings,
    /// The letters in the exact case that a post must have.
    pub(crate) cased: Option<String>,
}

/// Error in instructions that cannot be executed, with the field (`include[3].text`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("`{field}` has no letter and no digit")]
    NoWords { field: String },
    #[error("`{field}` is not a number between -1e6 and 1e6")]
    OutOfRange { field: String },
    #[error("`{field}` is an empty group, which nothing satisfies")]
    EmptyGroup { field: String },
}

impl PlanError {
    /// Returns the path of the field within the instructions.
    pub fn field(&self) -> &str {
        let (Self::NoWords { field } | Self::OutOfRange { field } | Self::EmptyGroup { field }) =
            self;
        field
    }
}

impl Plan {
    /// # Errors
    /// Returns an error for the first field that cannot be executed.
    pub fn compile(instructions: &Instructions) -> Result<Self, PlanError> {
        let names = instructions
            .names
            .iter()
            .enumerate()
            .map(|(at, name)| Name::compile(at, name))
            .collect::<Result<_, _>>()?;
        let require = instructions
            .require
            .iter()
            .enumerate()
            .map(|(at, group)| group_of(at, group))
            .collect::<Result<_, _>>()?;
        let exclude = instructions
            .exclude
            .iter()
            .enumerate()
            .map(|(at, term)| plain(term, || format!("exclude[{at}]")))
            .collect::<Result<_, _>>()?;
        let include = include(instructions)?;
        let mut plan = Self::from_parts(rule(instructions)?, include, names, require, exclude);
        plan.related = related(instructions)?;
        plan.offers = offers(instructions)?;
        Ok(plan.watching(instructions.feeds.iter().cloned()))
    }

    /// Creates a plan without feeds from compiled parts.
    pub(crate) fn from_parts(
        rule: Rule,
        include: Vec<Term>,
        names: Vec<Name>,
        require: Vec<Vec<Plain>>,
        exclude: Vec<Plain>,
    ) -> Self {
        Self {
            rule,
            include,
            names,
            require,
            exclude,
            related: Vec::new(),
            offers: Vec::new(),
            feeds: Vec::new(),
        }
    }

    /// Returns the same plan with other feeds, for instructions that name none.
    #[must_use]
    pub fn watching(mut self, feeds: impl IntoIterator<Item = FeedName>) -> Self {
        self.feeds = feeds.into_iter().collect();
        self.feeds.sort();
        self.feeds.dedup();
        self
    }

    /// Returns the feeds, sorted. A plan without feeds watches nothing.
    pub fn feeds(&self) -> &[FeedName] {
        &self.feeds
    }

    pub fn watches(&self, feed: &FeedName) -> bool {
        self.feeds.binary_search(feed).is_ok()
    }

    pub fn focus(&self) -> Option<Focus> {
        match self.rule {
            Rule::Focus { focus, .. } => Some(focus),
            Rule::Sum { .. } | Rule::AnyTerm | Rule::AnyName | Rule::Groups => None,
        }
    }

    /// Returns the score that a post must reach; `None` if terms, names or groups decide alone.
    pub fn threshold(&self) -> Option<f64> {
        match self.rule {
            Rule::Focus { threshold, .. } | Rule::Sum { threshold } => Some(threshold),
            Rule::AnyTerm | Rule::AnyName | Rule::Groups => None,
        }
    }
}

impl Name {
    fn compile(at: usize, name: &domain::instructions::WatchedName) -> Result<Self, PlanError> {
        let spelling = |text: &String, field: String| {
            Ok(Spelling {
                text: text.clone(),
                readings: exact(text, || field)?,
                cased: name.case_sensitive.then(|| text::cased_letters(text)),
            })
        };
        let mut spellings = vec![spelling(&name.text, format!("names[{at}].text"))?];
        for (nth, alias) in name.aliases.iter().enumerate() {
            spellings.push(spelling(alias, format!("names[{at}].aliases[{nth}]"))?);
        }
        // `Acme` and the alias `acme` are found in the same places, and count once.
        let mut seen = Vec::new();
        spellings.retain(|spelling| {
            let key = (spelling.readings.clone(), spelling.cased.clone());
            let new = !seen.contains(&key);
            seen.push(key);
            new
        });
        let context = name
            .context
            .iter()
            .enumerate()
            .map(|(nth, word)| {
                let readings = Readings::stemmed(word)
                    .ok_or_else(|| no_words(format!("names[{at}].context[{nth}]")))?;
                Ok(Plain {
                    text: word.clone(),
                    readings,
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            text: name.text.clone(),
            kind: name.kind,
            spellings,
            context,
            on_topic_percent: name.on_topic_percent.unwrap_or(ON_TOPIC_PRIOR).min(100),
            ordinary_posts: name.ordinary_posts.unwrap_or_default(),
        })
    }
}

fn rule(instructions: &Instructions) -> Result<Rule, PlanError> {
    let threshold = match instructions.threshold {
        Some(threshold) if !in_range(threshold) => {
            return Err(PlanError::OutOfRange {
                field: "threshold".to_owned(),
            });
        }
        threshold => threshold,
    };
    Ok(match (instructions.focus, threshold) {
        (Some(focus), threshold) => Rule::Focus {
            focus,
            threshold: threshold.unwrap_or_else(|| model::threshold(focus, Sensitivity::Balanced)),
            scale: TopicScale::new(instructions.background_scores),
            gate: gate_of(focus, instructions),
            has_offers: !instructions.offers.is_empty(),
        },
        (None, Some(threshold)) => Rule::Sum { threshold },
        (None, None) if !instructions.include.is_empty() => Rule::AnyTerm,
        (None, None) if instructions.require.is_empty() && !instructions.names.is_empty() => {
            Rule::AnyName
        }
        (None, None) => Rule::Groups,
    })
}

fn gate_of(focus: Focus, instructions: &Instructions) -> Focus {
    let mut names = instructions.names.iter();
    if focus == Focus::Competitor && !names.any(|name| name.kind == NameKind::Watched) {
        Focus::Sales
    } else {
        focus
    }
}

/// Returns distinct terms, heaviest first. Of two equal terms (`CRM` and `crm`; with a focus `bike` and `bikes`) the
/// heavier counts.
fn include(instructions: &Instructions) -> Result<Vec<Term>, PlanError> {
    let focus = instructions.focus.is_some();
    let mut distinct: BTreeMap<Readings, Term> = BTreeMap::new();
    for (at, term) in instructions.include.iter().enumerate() {
        if !in_range(term.weight) {
            return Err(PlanError::OutOfRange {
                field: format!("include[{at}].weight"),
            });
        }
        let readings = if focus {
            Readings::stemmed(&term.text)
        } else {
            Readings::exact(&term.text)
        };
        let term = Term {
            text: term.text.clone(),
            readings: readings.ok_or_else(|| no_words(format!("include[{at}].text")))?,
            weight: term.weight,
        };
        let same = distinct.get(&term.readings);
        if same.is_none_or(|same| heavier(&term, same).is_lt()) {
            distinct.insert(term.readings.clone(), term);
        }
    }
    let mut terms: Vec<Term> = distinct.into_values().collect();
    terms.sort_by(heavier);
    if focus {
        scale(&mut terms);
    }
    Ok(terms)
}

/// Makes weights relative to the plan's strongest, so that the topic is counted in terms, regardless of who wrote the
/// weights and on which scale.
fn scale(terms: &mut [Term]) {
    let strongest = terms.iter().take(STRONGEST);
    let sum: f64 = strongest.map(|term| term.weight.max(0.0)).sum();
    #[expect(clippy::cast_precision_loss, reason = "a small constant")]
    let mean = sum / STRONGEST as f64;
    if mean > 0.0 {
        for term in terms {
            term.weight /= mean;
        }
    }
}

fn related(instructions: &Instructions) -> Result<Vec<Plain>, PlanError> {
    let terms = instructions.related_terms.iter().enumerate();
    let plain = |(at, text): (usize, &String)| {
        Ok(Plain {
            text: text.clone(),
            readings: Readings::stemmed(text)
                .ok_or_else(|| no_words(format!("relatedTerms[{at}]")))?,
        })
    };
    terms.map(plain).collect()
}

fn offers(instructions: &Instructions) -> Result<Vec<Term>, PlanError> {
    let terms = instructions.offers.iter().enumerate();
    let offer = |(at, term): (usize, &domain::instructions::Term)| {
        Ok(Term {
            text: term.text.clone(),
            readings: Readings::stemmed(&term.text)
                .ok_or_else(|| no_words(format!("offers[{at}].text")))?,
            weight: (term.weight.clamp(0.0, 1.0) * 100.0).round() / 100.0,
        })
    };
    terms.map(offer).collect()
}

/// Sums of weights within these bounds are exact enough, and never infinite.
fn in_range(number: f64) -> bool {
    (-1e6..=1e6).contains(&number)
}

fn heavier(a: &Term, b: &Term) -> std::cmp::Ordering {
    b.weight
        .total_cmp(&a.weight)
        .then_with(|| a.text.cmp(&b.text))
}

fn group_of(at: usize, group: &[String]) -> Result<Vec<Plain>, PlanError> {
    if group.is_empty() {
        return Err(PlanError::EmptyGroup {
            field: format!("require[{at}]"),
        });
    }
    group
        .iter()
        .enumerate()
        .map(|(nth, term)| plain(term, || format!("require[{at}][{nth}]")))
        .collect()
}

fn plain(term: &str, field: impl FnOnce() -> String) -> Result<Plain, PlanError> {
    Ok(Plain {
        text: term.to_owned(),
        readings: exact(term, field)?,
    })
}

/// Returns the readings of a term in a plan with a focus.
pub(crate) fn stemmed(term: &str) -> Option<Readings> {
    Readings::stemmed(term)
}

fn exact(term: &str, field: impl FnOnce() -> String) -> Result<Readings, PlanError> {
    Readings::exact(term).ok_or_else(|| no_words(field()))
}

fn no_words(field: String) -> PlanError {
    PlanError::NoWords { field }
}

#[cfg(test)]
mod tests {
    use domain::Instructions;

    use super::{Plan, PlanError};

    fn compile(json: serde_json::Value) -> Result<Plan, PlanError> {
        Plan::compile(&serde_json::from_value::<Instructions>(json).unwrap())
    }

    #[test]
    fn terms_given_twice_count_once() {
        let json = serde_json::json!({"focus": "SALES", "include": [
            {"text": "bike", "weight": 1.0}, {"text": "Bikes", "weight": 2.0}, {"text": "tire", "weight": 2.0}]});
        let plan = compile(json).unwrap();
        let texts: Vec<_> = plan.include.iter().map(|term| term.text.as_str()).collect();
        assert_eq!(texts, ["Bikes", "tire"]);
    }

    #[test]
    fn unusable_instructions_are_named() {
        for (json, field) in [
            (
                serde_json::json!({"include": [{"text": "a", "weight": 1e300}]}),
                "include[0].weight",
            ),
            (serde_json::json!({"threshold": -1e7}), "threshold"),
            (
                serde_json::json!({"include": [{"text": "a", "weight": 1}, {"text": "🔥", "weight": 1}]}),
                "include[1].text",
            ),
            (serde_json::json!({"require": [["a"], []]}), "require[1]"),
            (serde_json::json!({"exclude": ["..."]}), "exclude[0]"),
            (
                serde_json::json!({"names": [{"text": "a", "kind": "OWN", "aliases": ["a", ""]}]}),
                "names[0].aliases[1]",
            ),
        ] {
            assert_eq!(compile(json).unwrap_err().field(), field);
        }
    }
}
