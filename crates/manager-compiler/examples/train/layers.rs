//! The layer of a focus: how much each part of a score counts, and where the threshold lies.

use std::collections::BTreeSet;

use domain::Focus;
use matching::{
    Plan, PostText, Signals,
    heads::{Head, HeadFeatures},
    model_file::Layer,
};

use crate::{
    Error,
    bench::Bench,
    heads::Trained,
    scores::{self, Scored},
    solve,
};

const RIDGE: f64 = 0.01;
type Slopes = [f64; Layer::SLOPES];

pub(crate) struct Fitted {
    pub(crate) layer: Layer,
    /// All that is judged of the focus, by layers that have not seen the customer.
    pub(crate) judged: Vec<Scored>,
}

pub(crate) fn fit(focus: Focus, bench: &Bench, trained: &Trained) -> Result<Fitted, Error> {
    let mut rows = Vec::new();
    for judged in bench.gold.iter().filter(|judged| judged.focus == focus) {
        let plan = bench
            .plans
            .get(&(judged.customer.clone(), focus))
            .ok_or("no such customer")?;
        let (title, text) = bench.posts.get(&judged.post).ok_or("no such post")?;
        let subject = bench
            .labels
            .get(&judged.post)
            .map(|(subject, _)| subject.as_str());
        let head = trained.unseen(subject, &judged.customer);
        rows.push((judged, slopes(plan, title, text, focus, head)));
    }
    let fitted = |without: Option<&str>| match by_hand(focus) {
        // Learned of no customer at all.
        Some(layer) => layer,
        None => {
            let rows = rows.iter().filter(|(judged, _)| {
                Some(judged.customer.as_str()) != without && Bench::may_train(&judged.post)
            });
            let rows = rows.filter_map(|(judged, x)| Some(((*x)?, judged.label > 0, 1.0)));
            calibrated(&rows.collect::<Vec<_>>())
        }
    };
    let customers: BTreeSet<&str> = rows.iter().map(|(j, _)| j.customer.as_str()).collect();
    let mut judged = Vec::new();
    for customer in customers {
        let layer = fitted(Some(customer));
        for (row, x) in rows.iter().filter(|(row, _)| row.customer == customer) {
            let score = x.map_or(0.0, |x| solve::sigmoid(sum(&layer, &x)));
            judged.push(Scored {
                customer: customer.to_owned(),
                label: row.label,
                score,
                value: x.is_some() && score >= matching::THRESHOLD,
            });
        }
    }
    Ok(Fitted {
        layer: fitted(None),
        judged,
    })
}

fn slopes(plan: &Plan, title: &str, text: &str, focus: Focus, head: &Head) -> Option<Slopes> {
    let post = PostText::new(Some(title).filter(|title| !title.is_empty()), Some(text));
    let signals = Signals::of(plan, &post, focus)?;
    let features = HeadFeatures::of(title, text);
    let head = features.answer(head.logit(&features));
    Some(Signals { head, ..signals }.slopes())
}

/// Where too little that is free to learn from tells of the focus: by hand, in round numbers.
///
/// Of COMPETITOR, everything that names a competitor counts, and the rest ranks. Of CRISIS, the posts
/// that address a company are free for measuring alone, and a layer learned of own posts trusts the
/// classifier, which knows their author, too much (average precision .72 against .81).
fn by_hand(focus: Focus) -> Option<Layer> {
    match focus {
        Focus::Sales => None,
        Focus::Competitor => Some(Layer {
            bias: -3.7,
            topic: 0.4,
            watched_names: 4.0,
            watched_names_head: 0.6,
            watched_names_lexicon: 0.4,
            ..Layer::default()
        }),
        Focus::Crisis => Some(Layer {
            bias: -2.3,
            own_name_head: 0.8,
            own_name_lexicon: 2.0,
            ..Layer::default()
        }),
    }
}

/// A layer whose 0.5 is the score from which the rows are told apart best.
fn calibrated(rows: &[(Slopes, bool, f64)]) -> Layer {
    let (bias, slopes) = solve::dense(rows, RIDGE);
    let layer = Layer::from_slopes(bias, slopes);
    let scored = rows
        .iter()
        .map(|(x, label, weight)| (sum(&layer, x), *label, *weight));
    let cut = scores::best_cut(scored.collect());
    Layer {
        bias: bias - cut,
        ..layer
    }
}

fn sum(layer: &Layer, x: &Slopes) -> f64 {
    let products = layer
        .slopes()
        .into_iter()
        .zip(x)
        .map(|(slope, x)| slope * x);
    layer.bias + products.sum::<f64>()
}
