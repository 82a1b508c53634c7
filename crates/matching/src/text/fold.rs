//! One spelling for variants that people read as the same word: compatibility forms (`ＡＣＭＥ`, `ﬁ`), case, Latin accents
//! (`Nestlé`, `Nestle`), and invisible characters.
//!
//! Accents are folded only on Latin letters: in other scripts a mark makes a different letter (`й` is not `и`).

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// Returns the form that is used to compare words. A word that would become empty stays unchanged.
pub fn fold(word: &str) -> Cow<'_, str> {
    if !word.is_ascii() {
        let folded = unicode(word, true);
        return if folded.is_empty() {
            Cow::Borrowed(word)
        } else {
            Cow::Owned(folded)
        };
    }
    if word.bytes().any(|b| b.is_ascii_uppercase()) {
        return Cow::Owned(word.to_ascii_lowercase());
    }
    Cow::Borrowed(word)
}

/// Returns only letters and digits, folded except for case, for comparing case-sensitive names.
pub(crate) fn cased_letters(text: &str) -> String {
    unicode(text, false)
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

fn unicode(word: &str, lower: bool) -> String {
    let mut latin = false;
    word.nfkd()
        .filter(|&c| {
            let accent = matches!(c, '\u{300}'..='\u{36f}');
            if !accent {
                latin = c.is_ascii_alphabetic();
            }
            !(accent && latin || vanishes(c))
        })
        .flat_map(|c| Letters::of(c, lower))
        .nfc()
        .collect()
}

/// Result of folding one character: itself, its lower case, or two letters.
enum Letters {
    Two([char; 2], usize),
    Lower(std::char::ToLowercase),
    Same(Option<char>),
}

impl Letters {
    fn of(c: char, lower: bool) -> Self {
        match c {
            'ß' | 'ẞ' => Self::Two(['s', 's'], 0),
            'æ' | 'Æ' => Self::Two(['a', 'e'], 0),
            'œ' | 'Œ' => Self::Two(['o', 'e'], 0),
            'ø' | 'Ø' => Self::Same(Some('o')),
            'ł' | 'Ł' => Self::Same(Some('l')),
            'đ' | 'Đ' => Self::Same(Some('d')),
            'ı' => Self::Same(Some('i')),
            'ς' => Self::Same(Some('σ')),
            c if lower => Self::Lower(c.to_lowercase()),
            c => Self::Same(Some(c)),
        }
    }
}

impl Iterator for Letters {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Self::Two(letters, at) => {
                *at += 1;
                letters.get(*at - 1).copied()
            }
            Self::Lower(letters) => letters.next(),
            Self::Same(letter) => letter.take(),
        }
    }
}

/// Returns whether the character is not part of any word: invisible characters (soft hyphen, joiners, direction marks,
/// variation selectors), and the vowel signs and stretching stroke that are optional in Arabic.
pub(super) fn vanishes(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{640}'
            | '\u{64b}'..='\u{652}'
            | '\u{670}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{cased_letters, fold};

    #[test]
    fn spellings_of_one_word_fold_equally() {
        for (one, other) in [
            ("Nestlé", "nestle"),
            ("ＡＣＭＥ", "acme"),
            ("STRASSE", "straße"),
            ("ﬁne", "fine"),
            ("ΟΔΟΣ", "οδος"),
            ("İstanbul", "istanbul"),
            ("soft\u{ad}ware", "software"),
            ("مـَرحبا", "مرحبا"),
            ("𝐀𝐜𝐦𝐞", "acme"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("й"), fold("и"));
    }

    #[test]
    fn case_stays_where_it_matters() {
        assert_eq!(cased_letters("Wi-Fi"), "WiFi");
        assert_eq!(cased_letters("Nestlé’s"), "Nestles");
    }

    proptest! {
        #[test]
        fn ascii_takes_a_short_cut_only(word in "[ -~]{0,20}") {
            prop_assert_eq!(fold(&word).into_owned(), super::unicode(&word, true));
        }

        #[test]
        fn folding_any_text_does_not_panic(word in "\\PC{0,40}") {
            let _ = (fold(&word), cased_letters(&word));
        }
    }
}
