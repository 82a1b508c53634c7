//! Decisions on posts for Managers, as the scanner and `earshot evaluate` make them.

use domain::{
    Focus,
    instructions::{NameKind, Sells, WatchedName},
    scan::ReaderOutcome,
};
use matching::{Evidence, Plan, PostText, is_english};

use crate::{Customer, Post, ReadError, Reader};

/// Lowest score of posts that are read. Of those below, one in fifty is relevant.
const CANDIDATE: f64 = 0.1;

/// Returns the lowest score of posts that are read for a Manager with this threshold.
pub fn candidate_threshold(threshold: f64) -> f64 {
    threshold.min(CANDIDATE)
}

/// Returns whether a post with this score is read for a Manager with this threshold.
pub fn is_candidate(score: f64, threshold: f64) -> bool {
    score >= candidate_threshold(threshold)
}

/// Returns why a post cannot be read. `text` is that of the whole post.
pub fn obstacle(title: &str, text: &PostText) -> Option<ReaderOutcome> {
    if title.trim().is_empty() {
        return Some(ReaderOutcome::Untitled);
    }
    (!is_english(text)).then_some(ReaderOutcome::OtherLanguage)
}

impl ReadError {
    /// Returns what it means for a decision.
    pub fn outcome(&self) -> ReaderOutcome {
        match self {
            Self::NoOffers => ReaderOutcome::NoOffers,
            Self::OtherLanguage => ReaderOutcome::OtherLanguage,
            Self::Run(_) | Self::Shape => ReaderOutcome::Unavailable,
        }
    }
}

impl Reader {
    /// Reads what the customer of a Manager sells; `names` are all of its instructions. Blocks the thread for about 100 ms.
    pub fn customer_of(
        &self,
        focus: Focus,
        sells: Option<&Sells>,
        names: &[WatchedName],
    ) -> Result<Customer, ReadError> {
        let sells =
            { sells.filter(|sells| !sells.offers.is_empty()) }.ok_or(ReadError::NoOffers)?;
        // Posts in English would be compared with words of another language.
        let text = format!("{}\n{}", sells.summary, sells.offers.join(".\n"));
        if !is_english(&PostText::new(None, Some(&text))) {
            return Err(ReadError::OtherLanguage);
        }
        let asked_about = match focus {
            Focus::Crisis => NameKind::Own,
            Focus::Sales | Focus::Competitor => NameKind::Watched,
        };
        let names: Vec<&str> = { names.iter() }
            .filter(|name| name.kind == asked_about)
            .flat_map(|name| std::iter::once(&name.text).chain(&name.aliases))
            .map(String::as_str)
            .collect();
        self.customer(&sells.summary, &sells.offers, &names)
    }

    /// Returns the score of a post that was read; `None` if the plan is not for a focus, or nothing of it occurs.
    pub fn score(
        &self,
        plan: &Plan,
        text: &PostText,
        post: &Post,
        customer: &Customer,
    ) -> Option<f64> {
        let focus = plan.focus()?;
        let evidence = Evidence::weigh(plan, text)?;
        let score = self.judge(focus, &evidence.values(), post, customer);
        // As precise as other scores.
        Some((score * 1e3).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::is_candidate;

    #[test]
    fn posts_of_little_relevance_are_read_only_for_a_lower_threshold() {
        for (score, threshold, expected) in [
            (0.1, 0.3, true),
            (0.09, 0.3, false),
            (0.9, 0.3, true),
            (0.05, 0.05, true),
            (0.04, 0.05, false),
            (f64::NAN, 0.3, false),
        ] {
            assert_eq!(
                is_candidate(score, threshold),
                expected,
                "{score} {threshold}"
            );
        }
    }
}
