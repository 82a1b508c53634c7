//! Positions of the matched terms in a post, for display. Computed only for matches.

use crate::{
    phrase::Readings,
    plan::{Name, Plan, Rule},
    post::{Field, PostText},
    strength::strength_of_name,
};

/// Upper limit: more spans say nothing new, and a post that repeats one word must not produce a long list.
const MAX_SPANS: usize = 100;

/// Position of a term in the post, in code points of the field as it was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub field: Field,
    pub start: usize,
    /// The first code point after the term.
    pub end: usize,
    pub term: String,
}

/// Returns the spans in the order of the post. Of two at the same position, the term that the plan lists first counts.
pub(super) fn of(plan: &Plan, post: &PostText) -> Vec<Span> {
    let mut spans = Spans {
        post,
        spans: Vec::new(),
    };
    let names_count = matches!(plan.rule, Rule::Focus { .. } | Rule::AnyName);
    for name in plan.names.iter().filter(|_| names_count) {
        if strength_of_name(post, name) > 0.0 {
            spans.add_name(name);
        }
    }
    let terms_count = !matches!(plan.rule, Rule::AnyName | Rule::Groups);
    let include = plan.include.iter().filter(|_| terms_count);
    for term in include.filter(|term| term.weight > 0.0) {
        spans.add(&term.text, &term.readings);
    }
    for term in plan.require.iter().flatten() {
        spans.add(&term.text, &term.readings);
    }
    spans.spans.sort();
    spans
        .spans
        .dedup_by_key(|span| (span.field, span.start, span.end));
    spans.spans
}

struct Spans<'a> {
    post: &'a PostText,
    spans: Vec<Span>,
}

impl Spans<'_> {
    fn add(&mut self, term: &str, readings: &Readings) {
        for phrase in readings.phrases() {
            // Each position costs a pass over the text before it.
            if self.spans.len() >= MAX_SPANS {
                return;
            }
            let spans = &mut self.spans;
            self.post.places(phrase, None, |field, start, end| {
                push(spans, term, field, start, end)
            });
        }
    }

    fn add_name(&mut self, name: &Name) {
        for spelling in &name.spellings {
            for phrase in spelling.readings.phrases() {
                let spans = &mut self.spans;
                let cased = spelling.cased.as_deref();
                self.post.places(phrase, cased, |field, start, end| {
                    push(spans, &name.text, field, start, end)
                });
            }
        }
    }
}

/// Adds a span and returns whether there is room for more.
fn push(spans: &mut Vec<Span>, term: &str, field: Field, start: usize, end: usize) -> bool {
    // The caller asks for each phrase again, even after the limit is reached.
    if spans.len() < MAX_SPANS {
        spans.push(Span {
            field,
            start,
            end,
            term: term.to_owned(),
        });
    }
    spans.len() < MAX_SPANS
}
