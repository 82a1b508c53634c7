//! The classifiers: one that is shipped, and one for each subject of the benchmark that has seen no
//! label of that subject.

use std::{collections::BTreeMap, path::Path};

use domain::Focus;
use matching::heads::{BUCKET_BITS, Head, HeadFeatures};

use crate::{
    Error,
    bench::Bench,
    data::{self, OwnPost},
    solve::{self, Row},
};

const C: f64 = 2.0;
const OWN: f64 = 4.0;

pub(crate) struct Trained {
    pub(crate) head: Head,
    /// Has seen no post of the benchmark but labelled ones.
    pub(crate) general: Head,
    pub(crate) without_subject: BTreeMap<String, Head>,
}

enum Origin {
    Public,
    Subject(String),
}

pub(crate) fn train(
    focus: Focus,
    dir: &Path,
    own: &[OwnPost],
    bench: &Bench,
) -> Result<Trained, Error> {
    let mut rows: Vec<(Origin, Row)> = Vec::new();
    let mut add = |origin, title: &str, text: &str, label, weight| {
        let features = HeadFeatures::of(title, text);
        let value = features.value();
        let row = Row {
            columns: features.buckets,
            value,
            label,
            weight,
        };
        rows.push((origin, row));
    };
    for example in data::public(focus, dir, |post| bench.posts.contains_key(post))? {
        add(
            Origin::Public,
            &example.title,
            &example.text,
            example.label,
            example.weight,
        );
    }
    for post in own {
        let label = post.labels[focus as usize];
        add(Origin::Public, &post.title, &post.text, label, OWN);
    }
    let by_hand = if focus == Focus::Sales { 6.0 } else { 1.5 };
    for (post, (subject, labels)) in &bench.labels {
        if let (Some(label), Some((title, text))) = (labels[focus as usize], bench.posts.get(post))
        {
            add(
                Origin::Subject(subject.clone()),
                title,
                text,
                label,
                by_hand,
            );
        }
    }
    let fit = |keep: &dyn Fn(&Origin) -> bool| {
        let kept: Vec<&Row> = rows
            .iter()
            .filter(|(o, _)| keep(o))
            .map(|(_, row)| row)
            .collect();
        head(&kept)
    };
    let subjects: std::collections::BTreeSet<String> = bench
        .labels
        .values()
        .map(|(subject, _)| subject.clone())
        .collect();
    let without_subject = subjects
        .into_iter()
        .filter(|_| focus != Focus::Crisis)
        .map(|subject| {
            let head = fit(&|origin| !matches!(origin, Origin::Subject(s) if *s == subject));
            (subject, head)
        })
        .collect();
    let general = fit(&|_| true);
    Ok(Trained {
        head: general.clone(),
        general,
        without_subject,
    })
}

fn head(rows: &[&Row]) -> Head {
    let (weights, intercept) = solve::sparse(rows, 1 << BUCKET_BITS, C);
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

impl Trained {
    /// The classifier that may judge a post for a customer: it has seen no label of either's subject.
    pub(crate) fn unseen(&self, subject_of_post: Option<&str>, customer: &str) -> &Head {
        let of = |subject| self.without_subject.get(subject);
        subject_of_post
            .and_then(of)
            .or_else(|| of(customer))
            .unwrap_or(&self.general)
    }
}
