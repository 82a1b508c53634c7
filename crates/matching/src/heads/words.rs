//! The words that the classifiers see.
//!
//! They differ from those of [`crate::text`]: an apostrophe is part of a word, marks that express a mood are words, and
//! all numbers are the same word. The weights were learned from these words, so the rules must not change.

/// The hash of no bytes.
const NOTHING: u64 = 0xcbf2_9ce4_8422_2325;

/// Lower case of a byte that an ASCII word can contain; zero for all other bytes.
static LOWER: [u8; 256] = {
    let mut lower = [0; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        if byte.is_ascii_alphanumeric() {
            lower[byte as usize] = byte.to_ascii_lowercase();
        }
        byte += 1;
    }
    lower
};

/// FNV-1a. Must be mixed afterwards, so that the highest bits depend on all bytes.
const fn hash(word: &[u8]) -> u64 {
    let (mut hash, mut at) = (NOTHING, 0);
    while at < word.len() {
        hash = hash_on(hash, word[at]);
        at += 1;
    }
    hash
}

#[inline]
const fn hash_on(hash: u64, byte: u8) -> u64 {
    (hash ^ byte as u64).wrapping_mul(0x0100_0000_01b3)
}

/// A token that is the same in every context.
const fn fixed(word: &'static [u8]) -> (&'static [u8], u64) {
    (word, hash(word))
}

/// Passes each word in lower case, and its hash, to `found` until it returns false. All addresses are one word and all
/// numbers another; handles are skipped, because the addressee says nothing about the intent.
pub(super) fn words(text: &str, mut found: impl FnMut(&[u8], u64) -> bool) {
    const ADDRESS: (&[u8], u64) = fixed(b"urlurl");
    const NUMBER: (&[u8], u64) = fixed(b"0");
    const ASKS: (&[u8], u64) = fixed(b"?");
    const CALLS: (&[u8], u64) = fixed(b"!");
    const MONEY: (&[u8], u64) = fixed(b"$");
    let bytes = text.as_bytes();
    let mut word = Vec::with_capacity(32);
    let mut at = 0;
    while let Some(&first) = bytes.get(at) {
        let (next, hash): (&[u8], u64) = match first {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | 0x80.. => {
                let Some((end, hash)) = read(text, at, &mut word) else {
                    at += text[at..].chars().next().map_or(1, char::len_utf8);
                    continue;
                };
                if is_address(&word, &bytes[at..end], &bytes[end..]) {
                    let rest = &text[end..];
                    at = end + rest.find(char::is_whitespace).unwrap_or(rest.len());
                    ADDRESS
                } else {
                    let number = is_number(text, at);
                    at = end;
                    if number { NUMBER } else { (&word, hash) }
                }
            }
            b'@' => {
                let handle = |c: char| !(c.is_alphanumeric() || c == '_');
                let rest = &text[at + 1..];
                at += 1 + rest.find(handle).unwrap_or(rest.len());
                continue;
            }
            _ => {
                at += 1;
                match first {
                    b'?' => ASKS,
                    b'!' => CALLS,
                    b'$' => MONEY,
                    _ => continue,
                }
            }
        };
        if !found(next, hash) {
            return;
        }
    }
}

/// Writes the word that begins at `at` into `word`, in lower case, and returns its end and its hash; `None` where no
/// word begins.
#[inline]
fn read(text: &str, at: usize, word: &mut Vec<u8>) -> Option<(usize, u64)> {
    word.clear();
    read_ascii(text.as_bytes(), at, word).or_else(|| read_any(&text[at..], at, word))
}

#[cold]
fn read_any(rest: &str, at: usize, word: &mut Vec<u8>) -> Option<(usize, u64)> {
    word.clear();
    if !rest.chars().next()?.is_alphanumeric() {
        return None;
    }
    let raw = &rest[..any_end(rest)];
    if raw.is_ascii() {
        word.extend(raw.bytes().map(|byte| byte.to_ascii_lowercase()));
    } else {
        let plain = raw.chars().map(|c| if c == '’' { '\'' } else { c });
        for c in plain.flat_map(char::to_lowercase) {
            word.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some((at + raw.len(), hash(word)))
}

/// The same for pure ASCII: reads, folds and hashes in one loop, byte by byte. A loop for each step would end at a
/// position that the processor mispredicts, word by word.
#[inline]
fn read_ascii(text: &[u8], mut at: usize, word: &mut Vec<u8>) -> Option<(usize, u64)> {
    let mut hash = NOTHING;
    while let Some(&byte) = text.get(at) {
        let mut lower = LOWER[usize::from(byte)];
        if lower == 0 {
            if !byte.is_ascii() {
                return None;
            }
            match text.get(at + 1) {
                _ if byte != b'\'' => break,
                Some(next) if next.is_ascii_alphanumeric() => lower = byte,
                Some(next) if !next.is_ascii() => return None,
                _ => break,
            }
        }
        word.push(lower);
        hash = hash_on(hash, lower);
        at += 1;
    }
    Some((at, hash))
}

/// Returns where a word ends: it consists of letters and digits, and of apostrophes between them.
fn any_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let inner =
            matches!(c, '\'' | '’') && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric());
        if !c.is_alphanumeric() && !inner {
            return at;
        }
    }
    text.len()
}

fn is_number(text: &str, at: usize) -> bool {
    match text.as_bytes()[at] {
        byte @ ..0x80 => byte.is_ascii_digit(),
        _ => text[at..].chars().next().is_some_and(char::is_numeric),
    }
}

fn is_address(word: &[u8], raw: &[u8], behind: &[u8]) -> bool {
    match word {
        b"http" | b"https" => {
            let one_case = raw == word || raw.iter().all(u8::is_ascii_uppercase);
            one_case && behind.starts_with(b"://")
        }
        b"www" => behind.starts_with(b"."),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{any_end, hash, read, words};

    fn found(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word, hashed| {
            assert_eq!(hashed, hash(word));
            found.push(String::from_utf8(word.to_vec()).unwrap());
            true
        });
        found
    }

    /// Cuts words as the training did.
    fn learned(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first.is_alphanumeric() {
                let (raw, behind) = rest.split_at(any_end(rest));
                rest = behind;
                let is_address = (matches!(raw, "http" | "https" | "HTTP" | "HTTPS")
                    && behind.starts_with("://"))
                    || (raw.eq_ignore_ascii_case("www") && behind.starts_with('.'));
                if is_address {
                    found.push("urlurl".to_owned());
                    rest = &rest[rest.find(char::is_whitespace).unwrap_or(rest.len())..];
                } else if first.is_numeric() {
                    found.push("0".to_owned());
                } else {
                    let plain = raw.chars().map(|c| if c == '’' { '\'' } else { c });
                    found.push(plain.flat_map(char::to_lowercase).collect());
                }
                continue;
            }
            rest = &rest[first.len_utf8()..];
            match first {
                '@' => {
                    let handle = |c: char| !(c.is_alphanumeric() || c == '_');
                    rest = &rest[rest.find(handle).unwrap_or(rest.len())..];
                }
                '?' | '!' | '$' => found.push(first.to_string()),
                _ => {}
            }
        }
        found
    }

    #[test]
    fn addresses_numbers_and_handles_are_not_words() {
        let expected = [
            "don't", "pay", "$", "0", "0", "!", "urlurl", "urlurl", "ok", "größe",
        ];
        let text = "@acme: Don’t pay $45.90! https://a.example/x?y=z WWW.b.example ok Größe…";
        assert_eq!(found(text), expected);
    }

    proptest::proptest! {
        #[test]
        fn words_are_cut_as_they_were_when_the_weights_were_learned(
            text in "([a-zA-Z0-9']{1,6}|é|’|ǅ|İ|²|٣|\\PC|[ @?!$.]|(http|HTTPS|Http|www|WWW)(://|\\.)|\n){0,24}"
        ) {
            proptest::prop_assert_eq!(found(&text), learned(&text));
        }

        #[test]
        fn ascii_short_cut_finds_the_same_word_ends(text in "([a-zA-Z0-9']|é|’|\\PC| ){0,12}") {
            let begins = text.chars().next().is_some_and(char::is_alphanumeric);
            let end = read(&text, 0, &mut Vec::new());
            if begins {
                proptest::prop_assert_eq!(end.map(|(end, _)| end), Some(any_end(&text)));
            }
        }
    }
}
