//! The language of a page, its stop words, and word segmentation for scripts without spaces.

use std::{collections::HashSet, sync::LazyLock};

use icu_segmenter::{WordSegmenter, WordSegmenterBorrowed, options::WordBreakInvariantOptions};
use matching::text;
use whatlang::{Detector, Lang};

use crate::word_lists;

/// Maximum length of the text that language detection reads, in characters.
const MAX_CHARS: usize = 4_000;
/// Minimum number of letters to detect a language.
const MIN_LETTERS: usize = 60;
/// Minimum number of letters to override the declared language.
const MIN_LETTERS_AGAINST: usize = 100;
/// A character of a script without spaces counts as this many letters.
const LETTERS_OF_SIGN: usize = 4;
/// Languages whose stop words are combined if the language is unknown.
const FALLBACK: [&str; 4] = ["de", "es", "fr", "pt"];

static SEGMENTER: LazyLock<WordSegmenterBorrowed<'static>> =
    LazyLock::new(|| WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()));

static DETECTOR: LazyLock<Detector> =
    LazyLock::new(|| Detector::with_allowlist(LANGUAGES.map(|(lang, _)| lang).to_vec()));

/// Detects the language of a text. `declared` is the page's declaration, which counts unless the text is clearly in
/// another language.
pub(crate) fn detect(text: &str, declared: &str) -> String {
    let end = text.char_indices().nth(MAX_CHARS);
    let text = &text[..end.map_or(text.len(), |(at, _)| at)];
    let letters: usize = text
        .chars()
        .filter(|c| c.is_alphabetic())
        .map(|c| {
            if text::spaceless(c) {
                LETTERS_OF_SIGN
            } else {
                1
            }
        })
        .sum();
    let needed = if declared.is_empty() {
        MIN_LETTERS
    } else {
        MIN_LETTERS_AGAINST
    };
    let detected = (letters >= needed)
        .then(|| DETECTOR.detect(text))
        .flatten()
        .and_then(|info| {
            let (_, code) = LANGUAGES.iter().find(|(lang, _)| *lang == info.lang())?;
            // The detector is unsure about short texts; their function words may decide.
            (info.is_reliable() || is_grammar_of(code, text)).then_some(*code)
        });
    detected.unwrap_or(declared).to_owned()
}

/// Common languages of pages, by the two-letter codes that pages declare. Detection is more reliable among fewer
/// languages.
const LANGUAGES: [(Lang, &str); 20] = [
    (Lang::Eng, "en"),
    (Lang::Deu, "de"),
    (Lang::Spa, "es"),
    (Lang::Fra, "fr"),
    (Lang::Por, "pt"),
    (Lang::Jpn, "ja"),
    (Lang::Ita, "it"),
    (Lang::Nld, "nl"),
    (Lang::Pol, "pl"),
    (Lang::Swe, "sv"),
    (Lang::Dan, "da"),
    (Lang::Nob, "no"),
    (Lang::Fin, "fi"),
    (Lang::Ces, "cs"),
    (Lang::Tur, "tr"),
    (Lang::Rus, "ru"),
    (Lang::Ukr, "uk"),
    (Lang::Cmn, "zh"),
    (Lang::Kor, "ko"),
    (Lang::Tha, "th"),
];

/// Returns whether a text has so many function words of a language that it must be written in it.
fn is_grammar_of(code: &str, text: &str) -> bool {
    let Some(list) = stop_words::lookup(code) else {
        return false;
    };
    let list: HashSet<&str> = list.iter().copied().collect();
    let (mut words, mut small) = (0_usize, 0_usize);
    for word in text
        .split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
    {
        words += 1;
        small += usize::from(list.contains(word.to_lowercase().as_str()));
    }
    small * 4 >= words
}

/// Standard wording of web pages, and praise, by language. The English words are in `data/web_words.txt`.
const FURNITURE: [(&str, &str); 5] = [
    ("de", include_str!("../data/words/furniture/de.txt")),
    ("es", include_str!("../data/words/furniture/es.txt")),
    ("fr", include_str!("../data/words/furniture/fr.txt")),
    ("pt", include_str!("../data/words/furniture/pt.txt")),
    ("ja", include_str!("../data/words/furniture/ja.txt")),
];
/// Function words that are missing from the lists of `stop-words`.
const GRAMMAR: [(&str, &str); 4] = [
    (
        "de",
        "obwohl sobald sofern sowie sowohl falls zudem dennoch ihnen unserem unseren ca inkl usw bzw zzgl ggf etc",
    ),
    (
        "es",
        "cuyo cuya cuyos cuyas asimismo jamás nadie alguien ningún mañana conmigo etc sido sean tal",
    ),
    (
        "fr",
        "jamais rien hier demain ensuite sinon lorsqu puisqu quelqu jusqu aujourd hui très ici tôt leurs y etc",
    ),
    (
        "pt",
        "nenhum algum alguém ninguém jamais ontem amanhã porém todavia enquanto cujos conosco resto etc",
    ),
];
/// Words that the lists of `stop-words` contain, but that customers sell.
const SUBJECTS: [(&str, &str); 3] = [("es", "sal"), ("fr", "pièce"), ("pt", "viagem obra")];

/// Words of a language that say nothing about a subject.
///
/// English uses the project's own lists ([`crate::background`]), which apply to every page: the list of `stop-words`
/// includes `system`, `home` and `fire`, which are subjects here.
#[derive(Debug, Default)]
pub(crate) struct CommonWords {
    stop_words: HashSet<String>,
    furniture: HashSet<String>,
    /// True if the language is known and its stop words are not.
    pub(crate) is_unlisted: bool,
}

impl CommonWords {
    pub(crate) fn of(language: &str) -> Self {
        let languages = match language {
            "en" => return Self::default(),
            "" => &FALLBACK[..],
            _ => &[language],
        };
        let of = |table: &[(&str, &'static str)]| {
            let lists = table.iter().filter(|(code, _)| languages.contains(code));
            let words = lists.flat_map(|&(_, words)| word_lists::words(words));
            words.flat_map(readings).collect::<HashSet<String>>()
        };
        let subjects = of(&SUBJECTS);
        let lists = languages.iter().filter_map(stop_words::lookup);
        let mut stop_words = of(&GRAMMAR);
        stop_words.extend(lists.flatten().flat_map(|word| readings(word)));
        stop_words.retain(|word| !subjects.contains(word));
        Self {
            stop_words,
            furniture: of(&FURNITURE),
            is_unlisted: !language.is_empty() && stop_words::lookup(language).is_none(),
        }
    }

    pub(crate) fn is_stop_word(&self, folded: &str) -> bool {
        self.stop_words.contains(folded)
    }

    pub(crate) fn is_furniture(&self, folded: &str) -> bool {
        self.furniture.contains(folded)
    }
}

/// Returns a word folded, and its parts: `aujourd'hui` is two words and a joined one.
fn readings(word: &str) -> Vec<String> {
    let mut readings = vec![text::fold(word).into_owned()];
    if !word.chars().any(text::spaceless) {
        readings.extend(
            text::tokens(word)
                .into_iter()
                .map(|token| token.text.into_owned()),
        );
    }
    readings
}

/// Returns the words of a run of characters that is written without spaces.
pub(crate) fn segments(run: &str) -> impl Iterator<Item = &str> {
    let mut start = 0;
    SEGMENTER.segment_str(run).filter_map(move |end| {
        let segment = &run[start..end];
        start = end;
        (!segment.is_empty()).then_some(segment)
    })
}

/// Returns whether a Japanese word is a function word: written only in Hiragana, or an inflected verb or adjective
/// (`守る`, `新しい`).
pub(crate) fn is_inflection(word: &str) -> bool {
    let is_hiragana = |c: char| matches!(c, '\u{3041}'..='\u{309f}');
    let ends = [
        'う', 'く', 'ぐ', 'す', 'つ', 'ぶ', 'む', 'る', 'い', 'た', 'だ', 'て', 'で', 'な', 'に',
        'っ',
    ];
    word.chars().all(|c| is_hiragana(c) || c == 'ー') || word.ends_with(ends)
}

/// Returns whether a character is Korean. Korean separates words with spaces, but attaches particles to them.
pub(crate) fn is_hangul(c: char) -> bool {
    matches!(u32::from(c), 0x1100..=0x11ff | 0x3130..=0x318f | 0xa960..=0xa97f | 0xac00..=0xd7ff)
}

#[cfg(test)]
mod tests {
    use super::{CommonWords, detect, segments};

    const GERMAN: &str =
        "Wir bauen Siebträgermaschinen von Hand und liefern sie in die ganze Schweiz. Unsere
        Werkstatt wartet und repariert auch ältere Geräte anderer Hersteller.";

    #[test]
    fn language_is_detected_if_the_declaration_is_missing_or_wrong() {
        assert_eq!(detect(GERMAN, ""), "de");
        assert_eq!(detect(GERMAN, "en"), "de");
        assert_eq!(detect("Siebträgermaschinen", "en"), "en");
        assert_eq!(detect("Espresso", ""), "");
        assert_eq!(
            detect("業務用エスプレッソマシンの販売と修理を行っています。", ""),
            "ja"
        );
    }

    #[test]
    fn common_words_depend_on_the_language() {
        for (language, words) in [
            ("de", "und für über würden außerdem"),
            ("es", "para también nuestra está"),
            ("fr", "aujourd hui être voilà nos"),
            ("pt", "você também não nossas"),
        ] {
            let common = CommonWords::of(language);
            let any = CommonWords::of("");
            for word in words.split(' ') {
                let word = matching::text::fold(word);
                assert!(common.is_stop_word(&word), "{language}: {word}");
                assert!(any.is_stop_word(&word), "{word}");
            }
        }
        assert!(CommonWords::of("is").is_unlisted && !CommonWords::of("pt").is_unlisted);
        assert!(!CommonWords::of("pt").is_stop_word("viagem"));
        assert!(!CommonWords::of("en").is_stop_word("die"));
    }

    #[test]
    fn japanese_is_cut_into_words() {
        let words: Vec<_> = segments("コーヒーメーカーと会計ソフトを比較").collect();
        assert_eq!(
            words,
            ["コーヒーメーカー", "と", "会計", "ソフト", "を", "比較"]
        );
    }
}
