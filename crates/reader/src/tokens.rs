//! Cuts a text into the tokens of the model's vocabulary, as BERT's tokenizer without case does.
//!
//! A text is normalised (no accents, lower case), cut at spaces and around punctuation and ideographs, and each word into
//! the longest pieces that the vocabulary has.

use std::collections::HashMap;

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::Problem;

pub(crate) const START: i32 = 101;
pub(crate) const END: i32 = 102;
const UNKNOWN: i32 = 100;
/// Tokens that the model knows under fixed numbers.
const FIXED: [(&str, i32); 3] = [("[UNK]", UNKNOWN), ("[CLS]", START), ("[SEP]", END)];
/// A longer word is one unknown token.
const MAX_WORD_CHARS: usize = 100;
/// Bytes that are looked at for each wanted token: a text without spaces must not cost more than others.
const BYTES_PER_TOKEN: usize = 64;
const CONTINUATION: &str = "##";

pub(crate) struct Tokenizer {
    ids: HashMap<Box<str>, i32>,
}

impl Tokenizer {
    /// Takes a token per line, in the order of their numbers.
    pub(crate) fn new(vocabulary: &str) -> Result<Self, Problem> {
        let ids: HashMap<Box<str>, i32> = vocabulary.lines().map(Box::from).zip(0..).collect();
        for (token, id) in FIXED {
            if ids.get(token) != Some(&id) {
                return Err(Problem::Unusable(format!(
                    "vocabulary: line {} must be `{token}`",
                    id + 1
                )));
            }
        }
        Ok(Self { ids })
    }

    /// Appends at most `room` tokens of a text.
    pub(crate) fn append(&self, text: &str, room: usize, tokens: &mut Vec<i32>) {
        let end = tokens.len() + room;
        let cut = text.floor_char_boundary(room.saturating_mul(BYTES_PER_TOKEN));
        let text = normalised(&text[..cut]);
        let words = text.split(' ').flat_map(|part| {
            part.split_inclusive(is_alone)
                .flat_map(|word| match word.char_indices().next_back() {
                    Some((at, last)) if is_alone(last) => [&word[..at], &word[at..]],
                    _ => [word, ""],
                })
        });
        for word in words.filter(|word| !word.is_empty()) {
            if tokens.len() >= end {
                break;
            }
            self.append_word(word, tokens);
        }
        tokens.truncate(end);
    }

    fn append_word(&self, word: &str, tokens: &mut Vec<i32>) {
        let start = tokens.len();
        let mut rest = word;
        let mut piece = String::new();
        if word.chars().count() > MAX_WORD_CHARS {
            tokens.push(UNKNOWN);
            return;
        }
        while !rest.is_empty() {
            let prefix = if rest.len() == word.len() {
                ""
            } else {
                CONTINUATION
            };
            let longest = rest
                .char_indices()
                .rev()
                .map(|(at, char)| at + char.len_utf8())
                .find_map(|length| {
                    piece.clear();
                    piece.push_str(prefix);
                    piece.push_str(&rest[..length]);
                    self.ids.get(piece.as_str()).map(|id| (*id, length))
                });
            let Some((id, length)) = longest else {
                tokens.truncate(start);
                tokens.push(UNKNOWN);
                return;
            };
            tokens.push(id);
            rest = &rest[length..];
        }
    }
}

/// Returns the text in lower case, without accents and invisible characters; every white space is a space.
fn normalised(text: &str) -> String {
    text.chars()
        .filter(|char| char.is_whitespace() || !is_invisible(*char))
        .map(|char| if char.is_whitespace() { ' ' } else { char })
        .nfd()
        .filter(|char| !is_combining_mark(*char))
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{fffd}' | '\u{ad}' | '\u{feff}')
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..)
}

/// Returns whether a character is a word by itself: punctuation, or an ideograph.
fn is_alone(char: char) -> bool {
    char.is_ascii_punctuation()
        || matches!(
            char,
            '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' | '\u{37e}' | '\u{387}'
        )
        || matches!(char, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2043}' | '\u{2045}'..='\u{2051}' | '\u{2053}'..='\u{205e}')
        || matches!(char, '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' | '\u{3030}' | '\u{30fb}')
        || matches!(char, '\u{ff01}'..='\u{ff03}' | '\u{ff05}'..='\u{ff0a}' | '\u{ff0c}'..='\u{ff0f}' | '\u{ff1a}' | '\u{ff1b}')
        || matches!(char, '\u{ff1f}' | '\u{ff20}' | '\u{ff3b}'..='\u{ff3d}' | '\u{ff3f}' | '\u{ff5b}' | '\u{ff5d}' | '\u{ff5f}'..='\u{ff65}')
        || matches!(char, '\u{4e00}'..='\u{9fff}' | '\u{3400}'..='\u{4dbf}' | '\u{20000}'..='\u{2a6df}' | '\u{2a700}'..='\u{2ceaf}')
        || matches!(char, '\u{f900}'..='\u{faff}' | '\u{2f800}'..='\u{2fa1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small vocabulary with the fixed tokens in their lines.
    fn tokenizer(words: &[&str]) -> Tokenizer {
        let mut lines: Vec<String> = (0..100).map(|unused| format!("[unused{unused}]")).collect();
        lines.extend(["[UNK]", "[CLS]", "[SEP]"].map(str::to_owned));
        lines.extend(words.iter().map(|&word| word.to_owned()));
        Tokenizer::new(&lines.join("\n")).unwrap()
    }

    fn tokens(tokenizer: &Tokenizer, text: &str, room: usize) -> Vec<i32> {
        let mut tokens = Vec::new();
        tokenizer.append(text, room, &mut tokens);
        tokens
    }

    #[test]
    fn a_word_is_cut_into_the_longest_pieces() {
        let known = tokenizer(&["print", "printer", "##s", "##er", "3", "##d"]);
        assert_eq!(tokens(&known, "3D printers", 9), [107, 108, 104, 105]);
        assert_eq!(tokens(&known, "printable", 9), [UNKNOWN]);
    }

    #[test]
    fn punctuation_and_ideographs_stand_alone() {
        let known = tokenizer(&["a", "?", "犬", "—"]);
        assert_eq!(
            tokens(&known, "a?a犬a—??", 9),
            [103, 104, 103, 105, 103, 106, 104, 104]
        );
    }

    #[test]
    fn case_accents_and_invisible_characters_do_not_count() {
        let known = tokenizer(&["cafe", "uber"]);
        assert_eq!(tokens(&known, "CAFÉ\u{200b}\n\tÜber", 9), [103, 104]);
    }

    #[test]
    fn a_text_ends_where_the_room_ends() {
        let known = tokenizer(&["a", "##b"]);
        assert_eq!(tokens(&known, "a abb a", 3), [103, 103, 104]);
        assert_eq!(tokens(&known, "a", 0), [0_i32; 0]);
        let long = "a".repeat(101);
        assert_eq!(tokens(&known, &long, 3), [UNKNOWN]);
    }

    #[test]
    fn a_vocabulary_without_the_fixed_tokens_is_refused() {
        let error = Tokenizer::new("a\nb").err().unwrap().to_string();
        assert!(error.contains("line 101 must be `[UNK]`"), "{error}");
    }
}
