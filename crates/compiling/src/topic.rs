//! Weights of terms, compared with ordinary posts.

use std::{io::Read as _, sync::LazyLock};

use domain::{
    Instructions,
    instructions::{NameKind, WatchedName},
};
use flate2::read::GzDecoder;
use matching::{Background, Plan};

/// 8,000 ordinary posts; see `data/README.md`. Unpacked and indexed on first use, which takes 0.2 s.
static BACKGROUND: LazyLock<Background> = LazyLock::new(|| {
    let mut text = String::new();
    let packed = include_bytes!("../data/background_posts.jsonl.gz");
    // A test proves that it can be read.
    let _ = GzDecoder::new(packed.as_slice()).read_to_string(&mut text);
    let posts: Vec<(String, String)> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    Background::new(
        posts
            .iter()
            .map(|(title, text)| (title.as_str(), text.as_str())),
    )
});

/// Maximum number of a plan's terms: typical pages have about forty meaningful words.
const MAX_TERMS: usize = 40;
/// Minimum percentage of the ordinary posts with a product's name that are about the subject.
const MIN_PRODUCT_PERCENT: u8 = 30;
/// Maximum number of related words.
const RELATED_TERMS: usize = 60;

/// Lowers the weights of everyday words, and measures the scores of ordinary posts.
pub(crate) fn calibrate(instructions: &mut Instructions) {
    instructions.include = BACKGROUND.reweigh(&instructions.include, MAX_TERMS);
    measure(instructions);
}

/// Adds products of well-known names, except a rival's products that are about another subject: a maker of phones
/// competes with the iPhone, not with iTunes.
pub(crate) fn add_products(instructions: &mut Instructions, products: Vec<WatchedName>) {
    let mut with_products = instructions.clone();
    with_products.names = products;
    let Ok(plan) = Plan::compile(&with_products) else {
        return;
    };
    for (mut name, usage) in with_products
        .names
        .into_iter()
        .zip(BACKGROUND.name_usages(&plan))
    {
        name.on_topic_percent = Some(usage.on_topic_percent);
        name.ordinary_posts = Some(usage.per_10_000);
        if name.kind == NameKind::Own || usage.on_topic_percent >= MIN_PRODUCT_PERCENT {
            instructions.names.push(name);
        }
    }
}

/// Measures the scores of ordinary posts and their use of the names, after terms were changed.
pub(crate) fn measure(instructions: &mut Instructions) {
    let compile = |instructions: &Instructions| Plan::compile(instructions).ok();
    instructions.background_scores =
        compile(instructions).map(|plan| BACKGROUND.topic_scores(&plan));
    // The plan is compiled again, because it now has its topic scale.
    if let Some(plan) = compile(instructions) {
        let usages = BACKGROUND.name_usages(&plan);
        for (name, usage) in instructions.names.iter_mut().zip(usages) {
            name.on_topic_percent = Some(usage.on_topic_percent);
            name.ordinary_posts = Some(usage.per_10_000);
        }
        instructions.related_terms = BACKGROUND.related_terms(&plan, RELATED_TERMS);
    }
}
