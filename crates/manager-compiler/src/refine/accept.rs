//! Rules for accepting a model's proposals.
//!
//! The weight of a given term changes within limits. A new term gets a weight that we compute, which the model may
//! lower or raise a little. A few new terms may be absent from all pages. Names must occur on the pages, except a few
//! competitors, which pages rarely name. No compiled term or name is removed.
//!
//! The model's brief, summary and phrases for what the customer sells replace the compiled ones. Each phrase must
//! contain a word of the pages.

use std::collections::HashSet;

use compiling::{
    compile,
    names::{self, Named},
    terms,
};
use domain::{
    Instructions,
    instructions::{self, MAX_PHRASES, MAX_SUMMARY_CHARS, MAX_TERM_CHARS, NameKind, Sells, Term},
};
use serde_json::Value;

use super::{Material, Proposal, ProposedName};

/// Lowest and highest factor for a given weight, the same as for feedback.
const FACTORS: (f64, f64) = (0.4, 1.5);
/// Maximum number of proposed terms, and of names, that are read.
const MAX_READ: usize = 60;
const MAX_NEW_TERMS: usize = 16;
/// Maximum number of new terms that occur on no page; they get half of the weight.
const MAX_UNSEEN_TERMS: usize = 8;
const UNSEEN: f64 = 0.5;
const MAX_TERM_WORDS: usize = 3;
const MAX_OWN: usize = 4;
const MAX_WATCHED: usize = 20;
const MAX_UNSEEN_WATCHED: usize = 10;
const MAX_NAME_WORDS: usize = 5;
const MAX_BRIEF_CHARS: usize = 600;
/// Fewer accepted phrases do not replace the compiled ones.
const MIN_PHRASES: usize = 3;

pub(super) fn accept(
    compiled: &Instructions,
    mut proposal: Proposal,
    material: &Material,
    names_are_given: bool,
) -> Instructions {
    proposal.terms.truncate(MAX_READ);
    proposal.names.truncate(MAX_READ);
    proposal.terms.retain_mut(|term| tidy(&mut term.text));
    proposal.names.retain_mut(|name| tidy(&mut name.text));
    let texts = proposal.terms.iter().map(|term| term.text.as_str());
    let names = proposal.names.iter().map(|name| name.text.as_str());
    let seen = material.occurring(texts.chain(names));

    let mut refined = compiled.clone();
    add_names(&mut refined, &proposal.names, &seen, names_are_given);
    add_terms(&mut refined, &proposal.terms, &seen);
    if let Some(brief) = proposal.brief.as_deref() {
        refined.brief = plain(brief, MAX_BRIEF_CHARS).unwrap_or(refined.brief);
    }
    if let Some(proposed) = &proposal.sells {
        refined.sells = sells(refined.sells.take(), proposed, material);
    }
    compile::keep_in_bounds(&mut refined);
    refined
}

/// Trims the text, and returns whether it is a valid term in customers' instructions.
fn tidy(text: &mut String) -> bool {
    match instructions::term(&Value::String(std::mem::take(text))) {
        Ok(term) => {
            *text = term;
            !text.chars().any(char::is_control)
        }
        Err(_) => false,
    }
}

fn add_terms(refined: &mut Instructions, proposed: &[Term], seen: &HashSet<String>) {
    let key = |text: &str| terms::stems(text).collect::<Vec<String>>();
    let names = refined.names.iter();
    let names = names.flat_map(|name| std::iter::once(&name.text).chain(&name.aliases));
    let mut known: HashSet<Vec<String>> = names.map(|name| key(name)).collect();
    let compiled: Vec<Vec<String>> = refined.include.iter().map(|term| key(&term.text)).collect();
    let (mut added, mut unseen) = (0, 0);
    for term in proposed {
        let stems = key(&term.text);
        // The first proposal for a term counts.
        if !known.insert(stems.clone()) {
            continue;
        }
        if let Some(at) = compiled.iter().position(|own| *own == stems) {
            let own = &mut refined.include[at].weight;
            *own = within(*own, term.weight);
            continue;
        }
        let is_seen = seen.contains(&term.text);
        let room = added < MAX_NEW_TERMS && (is_seen || unseen < MAX_UNSEEN_TERMS);
        let Some(own) = terms::weight_of(&term.text).filter(|_| room) else {
            continue;
        };
        if stems.len() > MAX_TERM_WORDS {
            continue;
        }
        added += 1;
        unseen += usize::from(!is_seen);
        let own = if is_seen { own } else { own * UNSEEN };
        refined.include.push(Term {
            text: term.text.clone(),
            weight: within(own, term.weight),
        });
    }
    terms::sort(&mut refined.include);
}

/// Returns the value nearest to `wanted` within the limits.
fn within(own: f64, wanted: f64) -> f64 {
    let weight = wanted.clamp(own * FACTORS.0, own * FACTORS.1);
    (weight * 1e3).round().max(1.0) / 1e3
}

fn add_names(
    refined: &mut Instructions,
    proposed: &[ProposedName],
    seen: &HashSet<String>,
    names_are_given: bool,
) {
    let spellings = refined.names.iter();
    let spellings = spellings.flat_map(|name| std::iter::once(&name.text).chain(&name.aliases));
    let mut known: HashSet<String> = spellings.map(|text| names::squeeze(text)).collect();
    let (mut own, mut watched, mut unseen) = (0, 0, 0);
    for name in proposed {
        let is_seen = seen.contains(&name.text);
        let room = match name.kind {
            NameKind::Own => is_seen && own < MAX_OWN,
            NameKind::Watched => {
                !names_are_given
                    && watched < MAX_WATCHED
                    && (is_seen || unseen < MAX_UNSEEN_WATCHED)
            }
        };
        let words = terms::stems(&name.text).count();
        if !room
            || words > MAX_NAME_WORDS
            || !terms::says_something(&name.text)
            || !known.insert(names::squeeze(&name.text))
        {
            continue;
        }
        match name.kind {
            NameKind::Own => own += 1,
            NameKind::Watched => {
                watched += 1;
                unseen += usize::from(!is_seen);
            }
        }
        let entries = Named::new(name.text.clone()).entries(name.kind, &refined.include);
        refined.names.extend(entries);
    }
}

/// Replaces the compiled summary and phrases, each as far as the proposed one can be used.
fn sells(compiled: Option<Sells>, proposed: &Sells, material: &Material) -> Option<Sells> {
    let mut sells = compiled.unwrap_or_default();
    if let Some(summary) = plain(&proposed.summary, MAX_SUMMARY_CHARS) {
        sells.summary = summary;
    }
    let phrases = proposed.offers.iter().take(MAX_READ);
    let phrases: Vec<String> = phrases
        .filter_map(|phrase| plain(phrase, MAX_TERM_CHARS))
        .collect();
    let words = |phrase: &str| {
        let words = phrase.split_whitespace().map(str::to_lowercase);
        words.filter(|word| terms::says_something(word)).collect()
    };
    let words: Vec<Vec<String>> = phrases.iter().map(|phrase| words(phrase)).collect();
    let seen = material.occurring(words.iter().flatten().map(String::as_str));
    let mut known = HashSet::new();
    let offers: Vec<String> = phrases
        .into_iter()
        .zip(words)
        .filter(|(_, words)| words.iter().any(|word| seen.contains(word)))
        .filter(|(phrase, _)| known.insert(phrase.to_lowercase()))
        .map(|(phrase, _)| phrase)
        .take(MAX_PHRASES)
        .collect();
    if offers.len() >= MIN_PHRASES {
        sells.offers = offers;
    }
    sells.or_none()
}

/// Accepts a single line of words: no markup and no links that could mislead a reader.
fn plain(text: &str, max_chars: usize) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = text.chars().any(char::is_alphabetic);
    let odd = text.contains("://")
        || text.to_lowercase().contains("www.")
        || text
            .chars()
            .any(|c| c.is_control() || matches!(c, '<' | '>' | '`' | '[' | ']'));
    let short = text.chars().count() <= max_chars;
    (words && !odd && short).then_some(text)
}

#[cfg(test)]
mod tests;
