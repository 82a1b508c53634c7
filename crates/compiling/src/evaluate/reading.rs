//! The reader's part of a decision.

use domain::scan::ReaderOutcome;
use matching::{PostText, Reason};
use reader::{Customer, Reader, is_candidate, obstacle};

use super::{Plans, Prediction};

/// A reader, and what the customers of plans sell, in their order.
pub(super) struct Reading<'a> {
    reader: &'a Reader,
    sold: Vec<Result<Customer, ReaderOutcome>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(reader: &'a Reader, plans: &Plans) -> Self {
        let sold = { plans.instructions.iter() }.map(|instructions| {
            let focus = instructions.focus.ok_or(ReaderOutcome::NoOffers)?;
            let sells = instructions.sells.as_ref();
            let customer = reader.customer_of(focus, sells, &instructions.names);
            customer.map_err(|error| error.outcome())
        });
        Self {
            reader,
            sold: sold.collect(),
        }
    }

    /// Gives candidates the reader's score. `predictions` are those of the plans, in their order.
    pub(super) fn judge(
        &self,
        plans: &Plans,
        predictions: &mut [Prediction],
        title: &str,
        text: &PostText,
        source: &str,
    ) {
        let mut post = None;
        let plans = plans.plans.iter().zip(&self.sold);
        for (prediction, ((_, _, plan), sold)) in predictions.iter_mut().zip(plans) {
            let Some(threshold) = plan.threshold() else {
                continue;
            };
            // The scanner does not see posts that the other rules rule out.
            let is_open = matches!(prediction.reason, Reason::Matched | Reason::BelowThreshold);
            if !is_open || !is_candidate(prediction.score, threshold) {
                continue;
            }
            let score = (|| {
                let sold = sold.as_ref().map_err(|outcome| *outcome)?;
                let post = post.get_or_insert_with(|| match obstacle(title, text) {
                    Some(obstacle) => Err(obstacle),
                    None => { self.reader.post(title, source) }.map_err(|error| error.outcome()),
                });
                let post = post.as_ref().map_err(|outcome| *outcome)?;
                let score = self.reader.score(plan, text, post, sold);
                score.ok_or(ReaderOutcome::Unavailable)
            })();
            prediction.reader = Some(match score {
                Ok(score) => {
                    prediction.score = score;
                    prediction.value = score >= threshold;
                    ReaderOutcome::Judged
                }
                Err(outcome) => outcome,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use domain::{Focus, Instructions, Sensitivity};
    use matching::{Plan, PostText};
    use reader::Reader;

    use super::Reading;
    use crate::{
        compile::{FetchedPage, compile},
        evaluate::Plans,
    };

    const TITLE: &str = "Which espresso machine should I buy?";
    const TEXT: &str = "I have 300 to spend.";

    fn instructions() -> Instructions {
        let page = FetchedPage {
            url: "http://192.0.2.1/".parse().unwrap(),
            content_type: None,
            body: b"<title>Lever espresso machines</title><p>Espresso machines, built by hand in Leith."
                .to_vec(),
        };
        let sensitivity = Sensitivity::Balanced;
        compile(&[page], Focus::Sales, sensitivity, &[], "FORUM", &[]).unwrap()
    }

    fn plans(instructions: Instructions) -> Plans {
        let plan = Plan::compile(&instructions).unwrap();
        Plans {
            plans: vec![("a".to_owned(), Focus::Sales, plan)],
            instructions: vec![instructions],
            skipped: Vec::new(),
        }
    }

    #[test]
    fn posts_that_are_excluded_are_not_read() {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model");
        let reader = Reader::in_folder(Path::new(model)).unwrap();
        let text = PostText::new(Some(TITLE), Some(TEXT));
        for is_excluded in [false, true] {
            let mut own = instructions();
            if is_excluded {
                own.exclude.push("buy".to_owned());
            }
            let plans = plans(own);
            let mut predictions: Vec<_> = plans.decide("1", &text).collect();
            Reading::new(&reader, &plans).judge(&plans, &mut predictions, TITLE, &text, TEXT);
            let [prediction] = &predictions[..] else {
                panic!("{predictions:?}");
            };
            assert_eq!(prediction.reader.is_none(), is_excluded, "{prediction:?}");
            assert!(!is_excluded || !prediction.value, "{prediction:?}");
        }
    }
}
