//! How strongly the terms and names of a plan occur in a post.

use domain::{Focus, instructions::NameKind};

use crate::{
    model::{self, Features},
    phrase::Readings,
    plan::{Name, Plan, Rule, Term},
    post::{Count, PostText},
};

/// Returns the focus of the gate, the features of the plan's terms and names, and whether any occurs; `None` for a plan
/// without a focus.
pub(crate) fn gate_features(plan: &Plan, post: &PostText) -> Option<(Focus, Features, bool)> {
    let Rule::Focus { gate, .. } = plan.rule else {
        return None;
    };
    let mut features = Features::default();
    let (surprise, mut any) = surprise(plan, post);
    if gate == Focus::Sales {
        features.surprise = surprise;
    }
    for name in &plan.names {
        let strength = strength_of_name(post, name);
        any |= strength > 0.0;
        // One name that occurs often does not count as two names.
        match name.kind {
            NameKind::Own => features.own_name = features.own_name.max(strength),
            NameKind::Watched => features.watched_names = features.watched_names.max(strength),
        }
    }
    Some((gate, features, any))
}

/// Returns how unusual this topic score is, and whether any term occurs.
pub(crate) fn surprise(plan: &Plan, post: &PostText) -> (f64, bool) {
    let Rule::Focus { scale, .. } = plan.rule else {
        return (0.0, false);
    };
    let mut any = false;
    let mut topic = 0.0;
    for term in &plan.include {
        let strength = strength_of_term(post, term);
        topic += strength;
        any |= strength > 0.0;
    }
    (scale.surprise(topic), any)
}

/// Returns a term's weight times its saturated frequency.
pub(crate) fn strength_of_term(post: &PostText, term: &Term) -> f64 {
    let frequency = frequency(
        term.readings
            .phrases()
            .iter()
            .map(|phrase| post.count(phrase)),
    );
    if frequency > 0.0 {
        term.weight * model::saturated(frequency, post.length())
    } else {
        0.0
    }
}

/// Returns how strongly a name stands out; zero when its required context is missing.
pub(crate) fn strength_of_name(post: &PostText, name: &Name) -> f64 {
    let counts = name.spellings.iter().map(|spelling| {
        let phrases = spelling.readings.phrases().iter();
        frequency(phrases.map(|phrase| match &spelling.cased {
            Some(cased) => post.count_cased(phrase, cased),
            None => post.count(phrase),
        }))
    });
    let frequency: f64 = counts.sum();
    let in_context =
        || name.context.is_empty() || name.context.iter().any(|term| occurs(post, &term.readings));
    if frequency > 0.0 && in_context() {
        model::name_strength(frequency)
    } else {
        0.0
    }
}

/// Returns the count of the most frequent reading: `Wi-Fi` in a post is `wi fi` and `wifi`, but one occurrence.
fn frequency(readings: impl Iterator<Item = Count>) -> f64 {
    readings
        .map(|count| model::frequency(count.title, count.text))
        .fold(0.0, f64::max)
}

pub(crate) fn occurs(post: &PostText, readings: &Readings) -> bool {
    readings
        .phrases()
        .iter()
        .any(|phrase| post.contains(phrase))
}
