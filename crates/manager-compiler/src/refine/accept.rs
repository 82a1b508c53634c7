//! Rules for accepting a model's proposals.
//!
//! The weight of a given term changes within limits. A new term gets a weight that we compute, which the model may
//! lower or raise a little. A few new terms may be absent from all pages. Names must occur on the pages, except a few
//! competitors, which pages rarely name. Nothing that was compiled is removed.

use std::collections::HashSet;

use domain::{
    Instructions,
    instructions::{self, NameKind, Term},
};
use serde_json::Value;

use super::{Material, Proposal, ProposedName};
use crate::{
    compile,
    names::{self, Named},
    terms,
};

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
    if let Some(brief) = proposal.brief.as_deref().and_then(plain) {
        refined.brief = brief;
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

/// Accepts a single line of words: no markup and no links that could mislead a reader.
fn plain(brief: &str) -> Option<String> {
    let brief = brief.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = brief.chars().any(char::is_alphabetic);
    let odd = brief.contains("://")
        || brief.to_lowercase().contains("www.")
        || brief
            .chars()
            .any(|c| c.is_control() || matches!(c, '<' | '>' | '`' | '[' | ']'));
    let short = brief.chars().count() <= MAX_BRIEF_CHARS;
    (words && !odd && short).then_some(brief)
}

#[cfg(test)]
mod tests;
