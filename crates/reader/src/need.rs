/// People say that they need something with words and phrases that begin like these.
const BEGINNINGS: [&str; 23] = [
    "look for",
    "looking for",
    "recommend",
    "suggest",
    "advice",
    "need",
    "want",
    "should i",
    "which",
    "best",
    "anyone",
    "anybody",
    "help",
    "buy",
    "worth",
    "alternative",
    "switch",
    "cheap",
    "choose",
    "decide",
    "how do",
    "how can",
    "how to",
];

/// Returns whether a sentence in lower case asks for something. Generous: what is asked for, vectors tell.
pub(crate) fn expresses_need(sentence: &str) -> bool {
    sentence.contains('?')
        || word_starts(sentence).any(|word| BEGINNINGS.iter().any(|one| word.starts_with(one)))
}

/// Returns whether a name occurs in a text as whole words; both in lower case.
pub(crate) fn mentions(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_of_word) && !text[at + name.len()..].starts_with(is_of_word)
    })
}

/// Returns the rest of the text from each start of a word.
fn word_starts(text: &str) -> impl Iterator<Item = &str> {
    let mut is_inside = false;
    text.char_indices().filter_map(move |(at, char)| {
        let was_inside = std::mem::replace(&mut is_inside, is_of_word(char));
        (is_inside && !was_inside).then(|| &text[at..])
    })
}

fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_found_at_the_start_of_words() {
        for text in [
            "any idea?",
            "we needed one",
            "(how to start",
            "cheapest flights",
        ] {
            assert!(expresses_need(text), "{text}");
        }
        for text in ["", "it was unwanted", "kneed", "my cat sleeps. é"] {
            assert!(!expresses_need(text), "{text}");
        }
    }

    #[test]
    fn a_name_is_found_as_whole_words() {
        assert!(mentions("why (dell) again", "dell"));
        assert!(mentions("xdell dell", "dell"));
        assert!(!mentions("xdell delle", "dell"));
        assert!(!mentions("édell", "dell"));
    }
}
