//! Two hundred invented posts on three platforms, and the expected decision on each.
//!
//! The files in `data` contain one post per block, its title first; `{a|b|c}` expands to three posts. The order and the
//! platforms are mixed, always in the same way.

use serde_json::{Value, json};

use crate::harness::config::{HACKER_NEWS, LEMMY};

const VARIANTS: usize = 3;
/// Platforms of five consecutive posts. The blog gets the fewest, because a feed shows only its last 50 entries.
const PLATFORMS: [Platform; 5] = [
    Platform::HackerNews,
    Platform::Lemmy,
    Platform::Blog,
    Platform::HackerNews,
    Platform::Lemmy,
];
const AUTHORS: [&str; 7] = [
    "fennimore",
    "old_tansy",
    "petra.k",
    "wickerwork",
    "mud_lark",
    "ansel2",
    "Rosalind",
];

/// Expected decision on a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// The author wants to buy what the customer sells.
    Relevant,
    Irrelevant,
    /// About the customer's products; whether the author wants one is a matter of opinion.
    Fuzzy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    HackerNews,
    Lemmy,
    Blog,
}

#[derive(Debug, Clone)]
pub(crate) struct Post {
    pub(crate) platform: Platform,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) author: &'static str,
    pub(crate) label: Label,
}

impl Post {
    /// Returns the post in the format of the simulator's control API.
    pub(crate) fn json(&self) -> Value {
        let (platform, community) = match self.platform {
            Platform::HackerNews => (HACKER_NEWS, None),
            Platform::Lemmy if self.label == Label::Irrelevant => (LEMMY, Some("mixed")),
            Platform::Lemmy => (LEMMY, Some("beekeeping")),
            Platform::Blog => ("feed:blog", None),
        };
        json!({
            "platform": platform, "community": community, "title": self.title, "text": self.text,
            "author": self.author,
        })
    }

    /// A post that only contains a word.
    pub(crate) fn about(word: &str, number: usize) -> Self {
        Self {
            platform: PLATFORMS[number % PLATFORMS.len()],
            title: format!("Number {number} about the {word}"),
            text: format!("There is nothing else to say about the {word}."),
            author: AUTHORS[number % AUTHORS.len()],
            label: Label::Fuzzy,
        }
    }
}

/// Returns the two hundred posts, in the order of their publication.
pub(crate) fn two_hundred() -> Vec<Post> {
    let files = [
        (Label::Relevant, VARIANTS, include_str!("data/relevant.txt")),
        (
            Label::Irrelevant,
            VARIANTS,
            include_str!("data/on_topic.txt"),
        ),
        (
            Label::Irrelevant,
            VARIANTS,
            include_str!("data/elsewhere_buying.txt"),
        ),
        (
            Label::Irrelevant,
            VARIANTS,
            include_str!("data/elsewhere.txt"),
        ),
        (Label::Fuzzy, 1, include_str!("data/fuzzy.txt")),
    ];
    let mut posts = Vec::new();
    for (label, variants, file) in files {
        for block in file.trim().split("\n\n") {
            let (title, text) = block.split_once('\n').unwrap();
            for variant in 0..variants {
                posts.push((label, choose(title, variant), choose(text, variant)));
            }
        }
    }
    shuffle(&mut posts);
    let posts = posts
        .into_iter()
        .enumerate()
        .map(|(number, (label, title, text))| Post {
            platform: PLATFORMS[number % PLATFORMS.len()],
            title,
            text,
            author: AUTHORS[number % AUTHORS.len()],
            label,
        });
    posts.collect()
}

/// Expands each `{a|b|c}` to its `variant`-th part.
fn choose(text: &str, variant: usize) -> String {
    let mut pieces = text.split('{');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (choices, rest) = piece.split_once('}').unwrap();
        let choices: Vec<&str> = choices.split('|').collect();
        out.push_str(choices[variant % choices.len()]);
        out.push_str(rest);
    }
    out
}

/// Fisher-Yates shuffle with a small random generator that never changes.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for end in (1..items.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let random = usize::try_from(state >> 33).unwrap();
        items.swap(end, random % (end + 1));
    }
}
