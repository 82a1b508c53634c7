//! The intent classifiers.

use std::path::Path;

use domain::Focus;
use matching::{
    heads::HeadFeatures,
    model_file::{BUCKET_BITS, Head},
};

use crate::{
    Error,
    bench::Bench,
    data::{self, OwnPost},
    solve::{self, Row},
};

const C: f64 = 2.0;
const OWN: f64 = 4.0;

pub(crate) fn train(
    focus: Focus,
    dir: &Path,
    own: &[OwnPost],
    bench: &Bench,
) -> Result<Head, Error> {
    let mut rows: Vec<Row> = Vec::new();
    let mut add = |title: &str, text: &str, label, weight| {
        let features = HeadFeatures::of(title, text);
        let value = features.value();
        let row = Row {
            columns: features.buckets,
            value,
            label,
            weight,
        };
        rows.push(row);
    };
    for example in data::public(focus, dir, |post| bench.posts.contains_key(post))? {
        add(&example.title, &example.text, example.label, example.weight);
    }
    for post in own {
        let label = post.labels[focus as usize];
        add(&post.title, &post.text, label, OWN);
    }
    let by_hand = if focus == Focus::Sales { 6.0 } else { 1.5 };
    for (post, (_, labels)) in &bench.labels {
        if let (Some(label), Some((title, text))) = (labels[focus as usize], bench.posts.get(post))
        {
            add(title, text, label, by_hand);
        }
    }
    Ok(head(&rows.iter().collect::<Vec<_>>()))
}

fn head(rows: &[&Row]) -> Head {
    let (weights, intercept) = solve::fit_sparse_logistic(rows, 1 << BUCKET_BITS, C);
    let largest = weights
        .iter()
        .fold(0.0, |max: f64, weight| max.max(weight.abs()));
    let scale = (largest / 127.0).max(1e-9);
    #[expect(clippy::cast_possible_truncation, reason = "within ±127 by the scale")]
    let weights = weights
        .iter()
        .map(|weight| (weight / scale).round() as i8)
        .collect();
    Head {
        intercept,
        scale,
        weights,
    }
}
