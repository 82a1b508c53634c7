//! F1 and average precision, as the benchmark defines them.

use std::collections::BTreeMap;

pub(crate) struct Scored {
    pub(crate) customer: String,
    /// For competitors, 2 (compared) is better than 1 (named).
    pub(crate) label: u8,
    pub(crate) score: f64,
    pub(crate) value: bool,
}

#[derive(Debug)]
pub(crate) struct Scores {
    precision: f64,
    recall: f64,
    pub(crate) f1: f64,
    pub(crate) ap: f64,
    map2: Option<f64>,
}

impl Scores {
    pub(crate) fn row(&self) -> String {
        let Self {
            precision,
            recall,
            f1,
            ap,
            map2,
        } = self;
        let map2 = map2.map_or(String::new(), |map2| format!("{map2:.3}"));
        format!("{precision:.3} | {recall:.3} | {f1:.3} | {ap:.3} | {map2}")
    }
}

pub(crate) fn of(judged: &[Scored]) -> Scores {
    let count = |what: &dyn Fn(&Scored) -> bool| number(judged.iter().filter(|j| what(j)).count());
    let hits = count(&|j| j.value && j.label > 0);
    let precision = hits / count(&|j| j.value).max(1.0);
    let recall = hits / count(&|j| j.label > 0).max(1.0);
    let mut by_customer: BTreeMap<&str, Vec<(f64, bool)>> = BTreeMap::new();
    for j in judged {
        by_customer
            .entry(&j.customer)
            .or_default()
            .push((j.score, j.label == 2));
    }
    let per_customer: Vec<f64> = by_customer
        .into_values()
        .filter_map(average_precision)
        .collect();
    Scores {
        precision,
        recall,
        f1: 2.0 * precision * recall / (precision + recall).max(1e-9),
        ap: average_precision(judged.iter().map(|j| (j.score, j.label > 0)).collect())
            .unwrap_or_default(),
        map2: (!per_customer.is_empty())
            .then(|| per_customer.iter().sum::<f64>() / number(per_customer.len())),
    }
}

/// Returns the average precision; ties form one step. `None` if nothing is relevant.
fn average_precision(mut rows: Vec<(f64, bool)>) -> Option<f64> {
    let all = number(rows.iter().filter(|(_, relevant)| *relevant).count());
    rows.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut sum, mut hits, mut seen) = (0.0, 0.0, 0.0);
    for ties in rows.chunk_by(|a, b| a.0 == b.0) {
        let new = number(ties.iter().filter(|(_, relevant)| *relevant).count());
        seen += number(ties.len());
        hits += new;
        sum += new / all * hits / seen;
    }
    (all > 0.0).then_some(sum)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
