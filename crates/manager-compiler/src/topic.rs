//! Weights of terms, held against ordinary posts.

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
    // A test holds that it can be read.
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

/// Terms of a plan: pages of the usual kind have some forty words that say something.
const MAX_TERMS: usize = 40;
/// Of the ordinary posts with a product's name, at least this share is about the subject.
const MIN_PRODUCT_PERCENT: u8 = 30;
/// More related words add nothing.
const RELATED_TERMS: usize = 60;

/// Lowers the weights of everyday words, and says what ordinary posts score.
pub(crate) fn calibrate(instructions: &mut Instructions) {
    instructions.include = BACKGROUND.reweigh(&instructions.include, MAX_TERMS);
    measure(instructions);
}

/// Adds products of well-known names, but those of a rival that are about something else than the subject:
/// a maker of phones competes with the iPhone, not with iTunes.
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

/// Says what ordinary posts score and how they use the names, after terms were changed.
pub(crate) fn measure(instructions: &mut Instructions) {
    let compile = |instructions: &Instructions| Plan::compile(instructions).ok();
    instructions.background_scores =
        compile(instructions).map(|plan| BACKGROUND.topic_scores(&plan));
    // Once more, now that the plan knows what is usual.
    if let Some(plan) = compile(instructions) {
        let usages = BACKGROUND.name_usages(&plan);
        for (name, usage) in instructions.names.iter_mut().zip(usages) {
            name.on_topic_percent = Some(usage.on_topic_percent);
            name.ordinary_posts = Some(usage.per_10_000);
        }
        instructions.related_terms = BACKGROUND.related_terms(&plan, RELATED_TERMS);
    }
}
