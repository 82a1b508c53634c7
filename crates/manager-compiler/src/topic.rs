//! Weights of terms, held against ordinary posts.

use std::{io::Read as _, sync::LazyLock};

use domain::Instructions;
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

/// Lowers the weights of everyday words, and says what ordinary posts score.
pub(crate) fn calibrate(instructions: &mut Instructions) {
    instructions.include = BACKGROUND.reweigh(&instructions.include, MAX_TERMS);
    measure(instructions);
}

/// Says what ordinary posts score and how they use the names, after terms were changed.
pub(crate) fn measure(instructions: &mut Instructions) {
    let compile = |instructions: &Instructions| Plan::compile(instructions).ok();
    instructions.background_scores =
        compile(instructions).map(|plan| BACKGROUND.topic_scores(&plan));
    // Once more, now that the plan knows what is usual.
    if let Some(plan) = compile(instructions) {
        let percents = BACKGROUND.on_topic_percents(&plan);
        for (name, percent) in instructions.names.iter_mut().zip(percents) {
            name.on_topic_percent = Some(percent);
        }
    }
}
