//! How many cues of a focus a post holds: a quick figure, known before its sentences are looked at.

use domain::Focus;

use crate::{
    evidence::cues::{self, Class},
    phrase::Phrase,
    post::PostText,
};

/// More phrases than this say nothing more.
pub(crate) const CAP: u8 = 4;

/// The focus that asks for a class of cues.
pub(crate) fn focus(class: Class) -> Option<Focus> {
    match class {
        Class::Need => Some(Focus::Sales),
        Class::Compare => Some(Focus::Competitor),
        Class::Trouble => Some(Focus::Crisis),
        _ => None,
    }
}

/// How many different cues of each focus occur, up to [`CAP`], by `Focus as usize`.
pub(crate) fn counts(post: &PostText) -> [u8; Focus::ALL.len()] {
    let mut counts = [0_u8; Focus::ALL.len()];
    cues::candidates(post, |class, phrase: &Phrase| {
        if let Some(focus) = focus(class) {
            let count = &mut counts[focus as usize];
            if *count < CAP && post.contains(phrase) {
                *count += 1;
            }
        }
    });
    counts
}

#[cfg(test)]
mod tests {
    use domain::Focus;

    use super::CAP;
    use crate::PostText;

    #[test]
    fn cues_tell_the_focus() {
        let post = PostText::new(
            Some("Can anyone recommend a good CRM?"),
            Some("We are looking for something cheap."),
        );
        assert!(post.lexicon(Focus::Sales) >= 2);
        assert_eq!(post.lexicon(Focus::Crisis), 0);
        let angry = "terrible, awful, broken, refund now, scam, worst ever";
        assert_eq!(PostText::new(None, Some(angry)).lexicon(Focus::Crisis), CAP);
        let german = "Kann mir jemand eine gute Kaffeemaschine empfehlen? Meine ist kaputt, ich suche eine neue.";
        assert!(PostText::new(None, Some(german)).lexicon(Focus::Sales) >= 1);
    }
}
