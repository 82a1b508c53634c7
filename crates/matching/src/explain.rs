//! A decision in the form that Scans and previews show.

use domain::{
    Match,
    scan::{self, SpanField},
};

use crate::{Decision, Field, PostText, Span, heads};

/// Works like `Match::from`, and adds the post's signals where the plan has a focus. The decision has already run the
/// classifiers, so this costs almost nothing.
pub fn explain(decision: Decision, post: &PostText) -> Match {
    let signals = decision.focus.map(|_| post.signals());
    Match {
        signals,
        ..Match::from(decision)
    }
}

impl From<Span> for scan::Span {
    fn from(span: Span) -> Self {
        Self {
            field: match span.field {
                Field::Title => SpanField::Title,
                Field::Text => SpanField::Text,
            },
            start: span.start,
            end: span.end,
            term: span.term,
        }
    }
}

impl PostText {
    /// Returns how far the post is of each kind, regardless of its subject.
    pub fn signals(&self) -> scan::Signals {
        // These figures are precise to three digits at most.
        let part = |focus| (self.head(focus) / heads::MAX_ANSWER * 1_000.0).round() / 1_000.0;
        scan::Signals {
            buying: part(domain::Focus::Sales),
            comparison: part(domain::Focus::Competitor),
            trouble: part(domain::Focus::Crisis),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Instructions;

    use super::explain;
    use crate::{Plan, PostText, evaluate};

    fn explained(focus: Option<&str>) -> domain::Match {
        let json = serde_json::json!({
            "include": [{"text": "kettle", "weight": 1}], "focus": focus, "threshold": 0.1
        });
        let plan = Plan::compile(&serde_json::from_value::<Instructions>(json).unwrap()).unwrap();
        let post = PostText::new(
            Some("Wür 🔥: which kettle should I buy?"),
            Some("Kettles, then."),
        );
        explain(evaluate(&plan, &post, None), &post)
    }

    #[test]
    fn term_positions_are_code_points() {
        let found = explained(None);
        assert_eq!(
            serde_json::to_value(&found.spans).unwrap(),
            serde_json::json!([{"field": "title", "start": 13, "end": 19, "term": "kettle"}])
        );
        assert_eq!(found.signals, None);
    }

    #[test]
    fn with_a_focus_signals_are_parts_of_one() {
        let signals = explained(Some("SALES")).signals.unwrap();
        for signal in [signals.buying, signals.comparison, signals.trouble] {
            assert!((0.0..=1.0).contains(&signal), "{signals:?}");
        }
        assert!(signals.buying > signals.trouble, "{signals:?}");
    }
}
