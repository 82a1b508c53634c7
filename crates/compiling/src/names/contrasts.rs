//! Rivals that a page sets its subject apart from: `Unlike Acronis, Vaultkeep has no agent`.
//!
//! The name of the subject must be in the same block, so that `Unlike last year` and what others write are left out.

use matching::text;

use super::{
    capitals,
    spelling::{is_camel_case, squeeze},
};
use crate::{background, page::Page};

const MAX_NAME_WORDS: usize = 3;
/// Folded phrases before the name of a rival.
const CONTRASTS: &str = "unlike
in contrast to
compared to
compared with
anders als
im gegensatz zu
im gegensatz zum
im unterschied zu
im vergleich zu
a diferencia de
al contrario que
en comparacion con
contrairement a
a la difference de
par rapport a
ao contrario da
ao contrario do
ao contrario de
diferente da
diferente do
em comparacao com";
/// After the name of a rival in Japanese.
const CONTRASTS_IN_JAPANESE: [&str; 4] = ["と違", "とは違", "と異な", "とは異な"];
/// Around the names in a Japanese heading that compares.
const LINKS_IN_JAPANESE: [char; 7] = ['と', '、', '・', '/', '/', '×', 'の'];
const MIN_JAPANESE_NAME: usize = 3;
const MAX_JAPANESE_NAME_BYTES: usize = 1_024;

/// Names that follow a contrast, in reading order.
pub(super) fn rivals(pages: &[Page], is_own: &dyn Fn(&str) -> bool) -> Vec<String> {
    let blocks = pages.iter().flat_map(|page| &page.text.blocks);
    let mut found = Vec::new();
    for block in blocks {
        let text = &block.text;
        if mentions(text, is_own) {
            found.extend(after_contrasts(text));
            found.extend(before_japanese_contrasts(text));
        }
    }
    found
}

/// The names in a Japanese line that compares, `AとB、Cの比較`: runs of katakana or of Latin letters.
pub(super) fn of_japanese_heading(line: &str) -> Vec<String> {
    let is_japanese = line.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}'));
    let parts = line.split(LINKS_IN_JAPANESE).filter(|_| is_japanese);
    parts
        .filter(|part| is_foreign_word(part))
        .map(str::to_owned)
        .collect()
}

fn mentions(text: &str, is_own: &dyn Fn(&str) -> bool) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let spaced = (0..words.len()).any(|from| {
        (from + 1..=words.len().min(from + MAX_NAME_WORDS))
            .any(|to| is_own(&words[from..to].join(" ")))
    });
    // Japanese writes no spaces.
    spaced || text.split(['は', 'を', 'が', 'の', '、', '。']).any(is_own)
}

fn after_contrasts(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let folded: Vec<String> = words.iter().map(|word| squeeze(word)).collect();
    let phrases = CONTRASTS
        .lines()
        .map(|phrase| phrase.split(' ').collect::<Vec<_>>());
    let mut names = Vec::new();
    for phrase in phrases {
        for at in 0..folded.len().saturating_sub(phrase.len()) {
            if folded[at..at + phrase.len()].iter().eq(phrase.iter()) {
                names.extend(capitals::name_after(&words[at + phrase.len()..]));
            }
        }
    }
    names.retain(|name| name.split_whitespace().count() <= MAX_NAME_WORDS && is_no_word(name));
    names
}

fn before_japanese_contrasts(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for contrast in CONTRASTS_IN_JAPANESE {
        for (at, _) in text.match_indices(contrast) {
            // A longer name is too long for a term.
            let start = text.floor_char_boundary(at.saturating_sub(MAX_JAPANESE_NAME_BYTES));
            let before = &text[start..at];
            let name = before
                .rsplit(['。', '、', 'は', 'も', ' '])
                .next()
                .unwrap_or_default();
            names.extend(
                Some(name)
                    .filter(|name| is_foreign_word(name))
                    .map(str::to_owned),
            );
        }
    }
    names
}

/// `Unlike Google` names a company; `Unlike Most` does not.
fn is_no_word(name: &str) -> bool {
    name.split_whitespace().any(|word| {
        let folded = squeeze(word);
        let stem = text::stem(&folded);
        is_camel_case(word)
            || (!background::is_ordinary(&stem)
                && !background::is_stop_word(&folded)
                && !background::is_web_word(&stem))
    })
}

fn is_foreign_word(part: &str) -> bool {
    let is_katakana = |c: char| matches!(c, '\u{30a1}'..='\u{30ff}');
    let is_latin = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | '-');
    part.chars().count() >= MIN_JAPANESE_NAME
        && part.chars().any(char::is_alphabetic)
        && (part.chars().all(is_katakana) || part.chars().all(is_latin))
}
