//! Spellings of names, and which words can be a name.

use std::{
    collections::{BTreeMap, HashSet},
    sync::LazyLock,
};

use matching::text;

use crate::{
    background, figures,
    names::{
        named::{MAX_NAMES, Named},
        spelling::{clean, is_camel_case, is_in_capitals, squeeze},
    },
    page::Page,
    word_lists,
};

const MAX_WORDS: usize = 4;
const MAX_SPELLINGS: usize = 12;
/// Words of legal texts, which are not part of a name: `Steam Subscriber Agreement`.
static LEGAL: LazyLock<HashSet<&str>> =
    LazyLock::new(|| word_lists::entries(include_str!("../../../data/words/legal.txt")).collect());
/// Words that a company's short name may omit: `United Airlines`, `Granary DB`.
static KINDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    word_lists::entries(include_str!("../../../data/words/company_kinds.txt")).collect()
});

/// Adds a name, or a further spelling of an existing one: `Tunnelry VPN` is `Tunnelry`.
pub(super) fn add(found: &mut Vec<Named>, name: &str) {
    let name = clean(name);
    if !is_name(&name) || found.len() >= MAX_NAMES {
        return;
    }
    let squeezed = squeeze(&name);
    let first = |text: &str| squeeze(text.split_whitespace().next().unwrap_or_default());
    let same = found.iter_mut().find(|named| {
        let main = &named.spellings[0];
        let shorter = main
            .split_whitespace()
            .count()
            .min(name.split_whitespace().count());
        squeeze(main) == squeezed
            || (shorter == 1
                && first(main) == first(&name)
                && !background::is_stop_word(&first(main)))
    });
    match same {
        Some(named) => {
            let Named {
                spellings,
                doubtful,
                ..
            } = Named::new(name);
            for spelling in spellings {
                push_spelling(named, spelling);
            }
            for spelling in doubtful {
                if !named.doubtful.contains(&spelling) {
                    named.doubtful.push(spelling);
                }
            }
        }
        None => found.push(Named::new(name)),
    }
}

pub(super) fn push_spelling(named: &mut Named, spelling: String) {
    let folded = text::fold(&spelling).into_owned();
    let is_new = || {
        !named
            .spellings
            .iter()
            .any(|known| text::fold(known) == folded)
    };
    if named.spellings.len() < MAX_SPELLINGS && is_new() {
        named.spellings.push(spelling);
    }
}

/// Returns whether it can be a name at all: `Home` and `Official site` cannot.
pub(super) fn is_name(name: &str) -> bool {
    let words: Vec<_> = text::words(name).collect();
    let says_something = |word: &text::Token<'_>| {
        let stem = text::stem(&word.text);
        !background::is_stop_word(&word.text)
            && !background::is_web_word(&stem)
            && word.text.chars().any(char::is_alphabetic)
    };
    let is_legal = words.iter().any(|word| LEGAL.contains(&*word.text));
    // In scripts without spaces, matching treats each character as a word.
    let count = match words.iter().any(|word| word.kind == text::Kind::Character) {
        true => name.split_whitespace().count(),
        false => words.len(),
    };
    (1..=MAX_WORDS).contains(&count)
        && !is_legal
        && !figures::is_figure(name)
        && squeeze(name).chars().nth(1).is_some()
        && words.iter().any(says_something)
}

/// Adds a short form: `United` for `United Airlines`, `Neiman` for `Neiman Marcus`.
pub(super) fn add_short_form(named: &mut Named) {
    let name = named.spellings[0].clone();
    let mut words = name.split_whitespace();
    let (Some(first), Some(rest)) = (words.next(), words.next()) else {
        return;
    };
    let goes_without = words.next().is_none() && KINDS.contains(&*text::fold(rest));
    let known = background::is_known(&text::stem(&text::fold(first)));
    if first.chars().nth(3).is_none() {
        return;
    }
    if !known {
        push_spelling(named, first.to_owned());
    } else if goes_without && !named.doubtful.iter().any(|doubtful| doubtful == first) {
        named.doubtful.push(first.to_owned());
    }
}

/// Replaces a name in capitals with the most frequent form in the prose of the pages: `Comcast` for `COMCAST`.
pub(super) fn unshout(named: &mut Named, pages: &[Page]) {
    let capitals = named.spellings[0].clone();
    if !is_in_capitals(&capitals) {
        return;
    }
    let blocks = pages
        .iter()
        .flat_map(|page| page.text.blocks.iter().map(|block| &block.text));
    let descriptions = pages.iter().map(|page| &page.text.description);
    let squeezed = squeeze(&capitals);
    let mut forms: BTreeMap<&str, usize> = BTreeMap::new();
    for word in blocks
        .chain(descriptions)
        .flat_map(|text| text::words(text))
    {
        let is_shouted = word.raw == capitals;
        if word.raw.starts_with(char::is_uppercase) && (is_shouted || squeeze(word.raw) == squeezed)
        {
            *forms.entry(word.raw).or_default() += 1;
        }
    }
    if let Some((form, _)) = forms.into_iter().max_by_key(|(_, count)| *count) {
        form.clone_into(&mut named.spellings[0]);
    }
}

/// Returns whether each word is an ordinary word: `Gift Cards`.
pub(super) fn is_of_ordinary_words(name: &str) -> bool {
    !name.split_whitespace().any(is_camel_case)
        && text::words(name).all(|word| {
            background::is_stop_word(&word.text) || background::is_ordinary(&text::stem(&word.text))
        })
}
