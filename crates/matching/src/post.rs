//! A post, cut into words once, when they are needed, and ready to be asked for phrases by any number of plans.
//!
//! Title and text count, the author and the subforum do not: a post is not about its author. A word
//! of the title counts twice.

use std::{ops::Range, sync::OnceLock};

use domain::{Focus, Post};

use crate::{
    decision::Field,
    evidence::PostEvidence,
    heads,
    language::Language,
    lexicon,
    phrase::Phrase,
    text::{self, Kind},
};

/// What lies beyond is not read. No platform's posts are longer, but a feed's entry can be.
const MAX_BYTES: usize = 128 * 1024;

/// A phrase is looked for in this many steps: enough for any text that somebody wrote, and an end for
/// one made of a single word.
pub(crate) const MAX_STEPS: u32 = 1 << 14;

/// The words of a post.
#[derive(Debug)]
pub struct PostText {
    source: String,
    title_len: usize,
    /// How many code points were cut off before title and text.
    blanks: [usize; 2],
    exact: OnceLock<Words>,
    stems: OnceLock<Words>,
    lexicons: OnceLock<[u8; Focus::ALL.len()]>,
    heads: OnceLock<[f64; Focus::ALL.len()]>,
    language: OnceLock<Language>,
    evidence: OnceLock<PostEvidence>,
}

/// How often a phrase occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Count {
    pub(crate) title: u32,
    pub(crate) text: u32,
}

impl PostText {
    #[must_use]
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
            exact: OnceLock::new(),
            stems: OnceLock::new(),
            lexicons: OnceLock::new(),
            heads: OnceLock::new(),
            language: OnceLock::new(),
            evidence: OnceLock::new(),
        }
    }

    /// How many words the post has.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.exact().length
    }

    /// The same post, nothing of it worked out.
    #[cfg(test)]
    pub(crate) fn again(&self) -> Self {
        let (title, text) = self.source.split_at(self.title_len);
        Self {
            blanks: self.blanks,
            ..Self::new(Some(title), text.get(2..))
        }
    }

    /// Title and text, an empty line between them.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn title_len(&self) -> usize {
        self.title_len
    }

    /// How many different phrases of the focus's lexicon occur, up to [`lexicon::CAP`].
    pub(crate) fn lexicon(&self, focus: Focus) -> u8 {
        self.lexicons.get_or_init(|| lexicon::counts(self))[focus as usize]
    }

    /// Keeps counts of the lexicons that were taken another way, and so saves taking them here.
    pub(crate) fn know_lexicons(&self, counts: impl FnOnce() -> Option<[u8; Focus::ALL.len()]>) {
        if self.lexicons.get().is_none()
            && let Some(counts) = counts()
        {
            // Whoever was first counted the same.
            let _ = self.lexicons.set(counts);
        }
    }

    /// How far the post is of the kind that the focus asks for, from 0 to [`heads::MAX_ANSWER`].
    pub(crate) fn head(&self, focus: Focus) -> f64 {
        let answers = self.heads.get_or_init(|| {
            let (title, text) = self.source.split_at(self.title_len);
            heads::answers(title, text)
        });
        answers[focus as usize]
    }

    pub(crate) fn language(&self) -> Language {
        *self.language.get_or_init(|| Language::detect(&self.source))
    }

    /// What the post says whatever the plan; worked out on first use.
    pub(crate) fn evidence(&self) -> &PostEvidence {
        self.evidence.get_or_init(|| PostEvidence::of(self))
    }

    /// Passes the byte ranges at which the phrase stands to `found`.
    pub(crate) fn ranges(&self, phrase: &Phrase, mut found: impl FnMut(usize, usize)) {
        self.occurrences(phrase, |first, last| {
            found(first.start, last.end);
            true
        });
    }

    /// As [`Self::ranges`], for a name that stands in just this case.
    pub(crate) fn ranges_cased(
        &self,
        phrase: &Phrase,
        cased: &str,
        mut found: impl FnMut(usize, usize),
    ) {
        self.occurrences(phrase, |first, last| {
            if self.is_cased(first, last, cased) {
                found(first.start, last.end);
            }
            true
        });
    }

    /// Byte ranges of all words, in the order of the text; other readings of words are left out.
    pub(crate) fn word_ranges(&self) -> Vec<Range<usize>> {
        let words = self.exact();
        let entries = words.by_place.iter().map(|&at| &words.entries[at].spot);
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(words.entries.len());
        for spot in entries.filter(|spot| spot.width == 1) {
            let range = spot.start..spot.end;
            if ranges.last().is_none_or(|last| last.end <= range.start) {
                ranges.push(range);
            }
        }
        ranges
    }

    pub(crate) fn count(&self, phrase: &Phrase) -> Count {
        let mut count = Count::default();
        self.occurrences(phrase, |first, _| {
            if first.title {
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
        self.occurrences(phrase, |_, _| {
            found = true;
            false
        });
        found
    }

    /// How often a name stands in just this case. A handle has no case of its own.
    pub(crate) fn count_cased(&self, phrase: &Phrase, cased: &str) -> Count {
        let mut count = Count::default();
        self.occurrences(phrase, |first, last| {
            let same = self.is_cased(first, last, cased);
            if same && first.title {
                count.title += 1;
            } else if same {
                count.text += 1;
            }
            true
        });
        count
    }

    /// Tells `found` where the phrase stands, in code points of title or text as they were given, for as
    /// long as it answers true.
    pub(crate) fn places(
        &self,
        phrase: &Phrase,
        cased: Option<&str>,
        mut found: impl FnMut(Field, usize, usize) -> bool,
    ) {
        self.occurrences(phrase, |first, last| {
            if cased.is_some_and(|cased| !self.is_cased(first, last, cased)) {
                return true;
            }
            let (field, from, blanks, end) = if first.title {
                let end = last.end.min(self.title_len);
                (Field::Title, 0, self.blanks[0], end)
            } else {
                (Field::Text, self.title_len + 2, self.blanks[1], last.end)
            };
            let count = |range: Range<usize>| self.source[range].chars().count();
            let start = blanks + count(from..first.start);
            found(field, start, start + count(first.start..end))
        });
    }

    fn is_cased(&self, first: &Spot, last: &Spot, cased: &str) -> bool {
        self.source[..first.start].ends_with('@')
            || text::cased_letters(&self.source[first.start..last.end]) == cased
    }

    /// Each different form, among the words or among the stems.
    pub(crate) fn forms(&self, stemmed: bool) -> impl Iterator<Item = &str> {
        let words = self.words(stemmed);
        let mut last = None;
        words.entries.iter().filter_map(move |entry| {
            let form = &words.forms[entry.form.clone()];
            (last != Some(form)).then(|| {
                last = Some(form);
                form
            })
        })
    }

    fn words(&self, stemmed: bool) -> &Words {
        if stemmed {
            self.stems.get_or_init(|| self.exact().stemmed())
        } else {
            self.exact()
        }
    }

    /// Cut on first use: most posts are decided without.
    fn exact(&self) -> &Words {
        self.exact
            .get_or_init(|| Words::cut(&self.source, self.title_len))
    }

    /// Tells `found` the first and the last word of each occurrence, for as long as it answers true.
    fn occurrences(&self, phrase: &Phrase, mut found: impl FnMut(&Spot, &Spot) -> bool) {
        let words = self.words(phrase.stemmed);
        let Some((first, rest)) = phrase.words.split_first() else {
            return;
        };
        let starts = words.of(first);
        if starts.is_empty() {
            return;
        }
        let mut follow = Vec::with_capacity(rest.len());
        for word in rest {
            match words.of(word) {
                [] => return,
                spots => follow.push(spots),
            }
        }
        let mut steps = MAX_STEPS;
        'starts: for start in starts {
            let mut last = &start.spot;
            for (spots, nth) in follow.iter().zip(1..) {
                steps -= 1;
                if steps == 0 {
                    return;
                }
                let mut next = last.place + last.width;
                if phrase.after_break.contains(&nth) && words.at(next).next().is_none() {
                    next += 1;
                }
                let at = spots.partition_point(|entry| entry.spot.place < next);
                match spots.get(at) {
                    Some(entry) if entry.spot.place == next => last = &entry.spot,
                    _ => continue 'starts,
                }
            }
            if !found(&start.spot, last) {
                return;
            }
        }
    }
}

impl From<&Post> for PostText {
    fn from(post: &Post) -> Self {
        Self::new(post.title.as_deref(), post.text.as_deref())
    }
}

/// Where a word stands.
#[derive(Debug, Clone)]
struct Spot {
    place: u32,
    width: u32,
    start: usize,
    end: usize,
    title: bool,
}

/// Words sorted by form and place, so that one form's occurrences are a slice, found by bisection.
#[derive(Debug, Default)]
struct Words {
    forms: String,
    entries: Vec<Entry>,
    /// The entries once more, by place.
    by_place: Vec<usize>,
    length: u32,
}

#[derive(Debug)]
struct Entry {
    form: Range<usize>,
    spot: Spot,
}

impl Words {
    fn cut(source: &str, title_len: usize) -> Self {
        let mut words = Self::default();
        for token in text::tokens(source) {
            words.length += u32::from(token.kind != Kind::Joined && token.kind != Kind::Marked);
            words.push(
                &token.text,
                Spot {
                    place: token.place,
                    width: token.width,
                    start: token.start,
                    end: token.start + token.raw.len(),
                    title: token.start < title_len,
                },
            );
        }
        words.sort();
        words
    }

    fn push(&mut self, form: &str, spot: Spot) {
        let start = self.forms.len();
        self.forms.push_str(form);
        self.entries.push(Entry {
            form: start..self.forms.len(),
            spot,
        });
    }

    fn sort(&mut self) {
        let forms = &self.forms;
        let key = |entry: &Entry| {
            let Spot { place, width, .. } = entry.spot;
            (&forms[entry.form.clone()], place, width)
        };
        self.entries.sort_by(|a, b| key(a).cmp(&key(b)));
        self.by_place = (0..self.entries.len()).collect();
        self.by_place.sort_by_key(|&at| self.entries[at].spot.place);
    }

    fn at(&self, place: u32) -> impl Iterator<Item = &Entry> {
        let place_of = |at: usize| self.entries[at].spot.place;
        let from = self.by_place.partition_point(|&at| place_of(at) < place);
        let here = self.by_place[from..].iter().map(|&at| &self.entries[at]);
        here.take_while(move |entry| entry.spot.place == place)
    }

    fn of(&self, form: &str) -> &[Entry] {
        let text = |entry: &Entry| &self.forms[entry.form.clone()];
        let from = self.entries.partition_point(|entry| text(entry) < form);
        let rest = &self.entries[from..];
        &rest[..rest.partition_point(|entry| text(entry) == form)]
    }

    fn stemmed(&self) -> Self {
        let mut stems = Self::default();
        let mut last: Option<(&str, std::borrow::Cow<'_, str>)> = None;
        for entry in &self.entries {
            let form = &self.forms[entry.form.clone()];
            let stem = match last.take() {
                Some((same, stem)) if same == form => stem,
                _ => text::stem(form),
            };
            stems.push(&stem, entry.spot.clone());
            last = Some((form, stem));
        }
        stems.sort();
        stems
    }
}

/// The text up to `bytes`, between characters.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// How many code points of white space a text begins with.
fn blanks(text: &str) -> usize {
    let bytes = text.len() - text.trim_start().len();
    text[..bytes].chars().count()
}
