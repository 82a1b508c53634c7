//! A post, cut into words once, on demand; any number of plans can then search it for phrases.
//!
//! Only title and text count. Author and subforum do not: a post is not about its author. A word of the title counts
//! twice.

use std::{ops::Range, sync::OnceLock};

use domain::{Focus, Post};

use crate::{
    evidence::{cues::Cues, of_post::PostEvidence},
    heads,
    language::{self, Language},
    phrase::Phrase,
    steps,
    text::{self, scan::Found},
    words::Words,
};

/// Maximum length; the rest is not read. No platform's posts are longer, but a feed's entry can be.
pub(crate) const MAX_BYTES: usize = 128 * 1024;

/// Maximum number of steps of a phrase search: sufficient for any text that a person wrote, and a limit for a text that
/// repeats a single word. See [`steps`] for all searches together.
pub(crate) const MAX_STEPS: u32 = 1 << 13;

/// The words of a post.
#[derive(Debug)]
pub struct PostText {
    source: String,
    title_len: usize,
    /// Number of white space characters that were cut off before title and text, in code points.
    blanks: [usize; 2],
    words: OnceLock<Words>,
    cues: OnceLock<Cues>,
    /// Answers of the classifiers, and the language result of [`heads::read`].
    heads: OnceLock<([f64; Focus::ALL.len()], Option<Option<bool>>)>,
    language: OnceLock<Language>,
    evidence: OnceLock<PostEvidence>,
}

/// Part of a post.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    Title,
    Text,
}

/// Number of occurrences of a phrase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) title: u32,
    pub(crate) text: u32,
}

impl PostText {
    pub fn new(title: Option<&str>, text: Option<&str>) -> Self {
        let (title, text) = (title.unwrap_or_default(), text.unwrap_or_default());
        let blanks = [title, text].map(blanks);
        let title = cut(title.trim(), MAX_BYTES);
        let text = cut(text.trim(), MAX_BYTES - title.len());
        let mut source = String::with_capacity(title.len() + text.len() + 2);
        source.push_str(title);
        source.push_str("\n\n");
        source.push_str(text);
        Self {
            source,
            title_len: title.len(),
            blanks,
            words: OnceLock::new(),
            cues: OnceLock::new(),
            heads: OnceLock::new(),
            language: OnceLock::new(),
            evidence: OnceLock::new(),
        }
    }

    /// Returns the number of words in the post.
    pub fn length(&self) -> u32 {
        self.words().length()
    }

    /// Returns the same post without any cached results.
    #[cfg(test)]
    pub(crate) fn again(&self) -> Self {
        let (title, text) = self.source.split_at(self.title_len);
        Self {
            blanks: self.blanks,
            ..Self::new(Some(title), text.get(2..))
        }
    }

    /// Returns title and text, with an empty line between them.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn title_len(&self) -> usize {
        self.title_len
    }

    /// Returns how many different cues of the focus occur, up to [`CAP`](crate::evidence::cues::CAP).
    pub(crate) fn lexicon(&self, focus: Focus) -> u8 {
        self.cues().counts[focus as usize]
    }

    /// Returns the cues of the post's language, searched for on first use.
    pub(crate) fn cues(&self) -> &Cues {
        self.cues
            .get_or_init(|| Cues::find(self.words(), self.language()))
    }

    /// Returns how far the post is of the kind that the focus asks for, from 0 to [`heads::MAX_ANSWER`].
    pub(crate) fn head(&self, focus: Focus) -> f64 {
        self.heads().0[focus as usize]
    }

    fn heads(&self) -> &([f64; Focus::ALL.len()], Option<Option<bool>>) {
        self.heads.get_or_init(|| {
            let (title, text) = self.source.split_at(self.title_len);
            heads::read(title, text)
        })
    }

    pub(crate) fn language(&self) -> Language {
        *self.language.get_or_init(|| match self.heads().1 {
            // The classifiers have read the same words.
            Some(english) if self.source.len() <= language::MAX_BYTES => {
                Language::detect_with(&self.source, english)
            }
            _ => Language::detect(&self.source),
        })
    }

    /// Returns the evidence that depends on the post alone, computed on first use.
    pub(crate) fn evidence(&self) -> &PostEvidence {
        self.evidence.get_or_init(|| {
            let heads = &self.heads().0;
            PostEvidence::of(
                &self.source,
                self.title_len,
                self.words(),
                self.cues(),
                heads,
            )
        })
    }

    /// Passes the byte range of each occurrence of the phrase to `found`.
    pub(crate) fn ranges(&self, phrase: &Phrase, mut found: impl FnMut(usize, usize)) {
        self.occurrences(phrase, |first, last, _| {
            found(first.start as usize, last.end as usize);
            true
        });
    }

    /// Works like [`Self::ranges`], for a name in exactly this case.
    pub(crate) fn ranges_cased(
        &self,
        phrase: &Phrase,
        cased: &str,
        mut found: impl FnMut(usize, usize),
    ) {
        self.occurrences(phrase, |first, last, is_read| {
            if !is_read || self.is_cased(first, last, cased) {
                found(first.start as usize, last.end as usize);
            }
            true
        });
    }

    pub(crate) fn count(&self, phrase: &Phrase) -> Count {
        let mut count = Count::default();
        self.occurrences(phrase, |first, _, _| {
            if self.is_in_title(first) {
                count.title += 1;
            } else {
                count.text += 1;
            }
            true
        });
        count
    }

    pub(crate) fn contains(&self, phrase: &Phrase) -> bool {
        let mut found = false;
        self.occurrences(phrase, |_, _, _| {
            found = true;
            false
        });
        found
    }

    /// Counts the occurrences of a name in exactly this case. Handles match in any case.
    pub(crate) fn count_cased(&self, phrase: &Phrase, cased: &str) -> Count {
        let mut count = Count::default();
        self.occurrences(phrase, |first, last, is_read| {
            let same = !is_read || self.is_cased(first, last, cased);
            if same && self.is_in_title(first) {
                count.title += 1;
            } else if same {
                count.text += 1;
            }
            true
        });
        count
    }

    /// Passes the position of each occurrence to `found`, in code points of the original title or text, until it
    /// returns false.
    pub(crate) fn places(
        &self,
        phrase: &Phrase,
        cased: Option<&str>,
        mut found: impl FnMut(Field, usize, usize) -> bool,
    ) {
        self.occurrences(phrase, |first, last, is_read| {
            if is_read && cased.is_some_and(|cased| !self.is_cased(first, last, cased)) {
                return true;
            }
            let (begin, end) = (first.start as usize, last.end as usize);
            let (field, from, blanks, end) = if self.is_in_title(first) {
                (Field::Title, 0, self.blanks[0], end.min(self.title_len))
            } else {
                (Field::Text, self.title_len + 2, self.blanks[1], end)
            };
            let count = |range: Range<usize>| self.source[range].chars().count();
            let start = blanks + count(from..begin);
            found(field, start, start + count(begin..end))
        });
    }

    fn is_in_title(&self, token: &Found) -> bool {
        (token.start as usize) < self.title_len
    }

    fn is_cased(&self, first: &Found, last: &Found, cased: &str) -> bool {
        let (start, end) = (first.start as usize, last.end as usize);
        self.source[..start].ends_with('@')
            || text::cased_letters(&self.source[start..end]) == cased
    }

    /// Returns the words, cut on first use.
    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.source))
    }

    /// Returns the words if the post was cut already.
    pub(crate) fn known_words(&self) -> Option<&Words> {
        self.words.get()
    }

    /// Passes the first and the last word of each occurrence to `found`, until it returns false, and true if it was read. It
    /// was not if the budget is spent.
    fn occurrences(&self, phrase: &Phrase, mut found: impl FnMut(&Found, &Found, bool) -> bool) {
        let words = self.words();
        let Some((&first, rest)) = phrase.hashes.split_first() else {
            return;
        };
        let occurs = |&hash: &u64| words.of_hash(hash, phrase.stemmed).next().is_some();
        if !rest.iter().all(occurs) {
            return;
        }
        let (tokens, hashes) = (words.tokens(), words.hashes(phrase.stemmed));
        let left = steps::left();
        let mut search = Search {
            left: left.min(MAX_STEPS),
            taken: 0,
        };
        let mut any = false;
        'starts: for start in words.of_hash(first, phrase.stemmed) {
            if !search.step() {
                break;
            }
            let mut last = start;
            for (&hash, nth) in rest.iter().zip(1..) {
                if !search.step() {
                    break 'starts;
                }
                let next = tokens[last].place + tokens[last].width;
                let mut here = words.at_place(next, last);
                if here.is_empty() && phrase.after_break.contains(&nth) {
                    here = words.at_place(next + 1, last);
                }
                match here.into_iter().find(|&at| hashes[at] == hash) {
                    Some(at) => last = at,
                    None => continue 'starts,
                }
            }
            any = true;
            if !found(&tokens[start], &tokens[last], true) {
                return;
            }
        }
        // The plan's budget is spent: a phrase whose words all occur counts as one occurrence, in any case of its letters.
        if !any
            && left == search.taken
            && let Some(start) = words.of_hash(first, phrase.stemmed).next()
        {
            found(&tokens[start], &tokens[start], false);
        }
    }
}

/// Steps of a search, which the plan's budget is charged with when the search ends.
struct Search {
    left: u32,
    taken: u32,
}

impl Search {
    /// Takes a step, and returns false if none is left.
    fn step(&mut self) -> bool {
        let may = self.taken < self.left;
        self.taken += u32::from(may);
        may
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        steps::take(self.taken);
    }
}

impl From<&Post> for PostText {
    fn from(post: &Post) -> Self {
        Self::new(post.title.as_deref(), post.text.as_deref())
    }
}

/// Returns the text up to `bytes`, cut at a character boundary.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Returns how many white space code points a text begins with.
fn blanks(text: &str) -> usize {
    let bytes = text.len() - text.trim_start().len();
    text[..bytes].chars().count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PostText;
    use crate::{
        phrase::{Phrase, Readings},
        text::{self, Token},
    };

    /// Returns the byte ranges of a phrase, found word by word by comparing texts.
    fn ranges(post: &PostText, phrase: &Phrase) -> Vec<(usize, usize)> {
        let mut tokens = text::tokens(post.source());
        tokens.sort_by_key(|token| token.place);
        let form = |token: &Token<'_>| {
            if phrase.stemmed {
                text::stem(&token.text).into_owned()
            } else {
                token.text.to_string()
            }
        };
        let forms: Vec<String> = tokens.iter().map(form).collect();
        let places: &[u32] = &tokens.iter().map(|token| token.place).collect::<Vec<_>>();
        let at_place = |place| (0..places.len()).filter(move |&at| places[at] == place);
        let mut found = Vec::new();
        'starts: for start in (0..tokens.len()).filter(|&at| *forms[at] == *phrase.words[0]) {
            let mut last = start;
            for (nth, word) in phrase.words.iter().enumerate().skip(1) {
                let mut next = tokens[last].place + tokens[last].width;
                if phrase.after_break.contains(&nth) && at_place(next).next().is_none() {
                    next += 1;
                }
                match at_place(next).find(|&at| *forms[at] == **word) {
                    Some(at) => last = at,
                    None => continue 'starts,
                }
            }
            found.push((
                tokens[start].start,
                tokens[last].start + tokens[last].raw.len(),
            ));
        }
        found
    }

    const WORDS: &str = "(bik(e|es|ing)|Wi-Fi|wi|fi|@acme|acme's|acme|c\\+\\+|Yahoo! Mail|mail|東京|a|AT&T|don't|[ .,'-]| |[.] |\n\n){1,30}";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn phrases_are_found_at_their_positions(title in WORDS, text in WORDS, from in 0..40_usize, length in 1..14_usize, stemmed in any::<bool>()) {
            let post = PostText::new(Some(&title), Some(&text));
            let term: String = post.source().chars().skip(from).take(length).collect();
            let readings = if stemmed { Readings::stemmed(&term) } else { Readings::exact(&term) };
            for phrase in readings.unwrap_or_default().phrases() {
                let mut found = Vec::new();
                post.ranges(phrase, |start, end| found.push((start, end)));
                prop_assert_eq!(&found, &ranges(&post, phrase));
                let count = post.count(phrase);
                let in_title = found.iter().filter(|(start, _)| *start < title.trim().len()).count();
                prop_assert_eq!((count.title as usize, (count.title + count.text) as usize), (in_title, found.len()));
            }
        }
    }
}
