use crate::{
    Encoder, ReadError, Vector,
    categories::{Categories, QUESTIONS},
    need, sentences,
};

/// Vectors of a post. They do not depend on a Manager.
#[derive(Debug, Clone)]
pub struct Post {
    pub(crate) title: View,
    pub(crate) whole: View,
    /// The title and the sentences after it.
    pub(crate) sentences: Vec<Sentence>,
}

/// Title or whole post, next to the questions for other goods.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) vector: Vector,
    /// Likeness to the question for each category.
    pub(crate) questions: [Vec<f32>; QUESTIONS],
}

#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub(crate) vector: Vector,
    /// Lower case.
    pub(crate) text: String,
    pub(crate) is_need: bool,
    /// Likeness to each category.
    pub(crate) categories: Vec<f32>,
}

impl Post {
    pub(crate) fn read(
        encoder: &Encoder,
        categories: &Categories,
        title: &str,
        text: &str,
    ) -> Result<Self, ReadError> {
        let texts = sentences::of_post(title, text);
        let reading = encoder.read(texts.iter().map(String::as_str))?;
        let view = |vector: Vector| View {
            questions: categories
                .questions
                .each_ref()
                .map(|asked| vector.each_likeness(asked)),
            vector,
        };
        let sentences: Vec<_> = texts
            .iter()
            .zip(reading.sentences)
            .map(|(text, vector)| {
                let text = text.to_lowercase();
                let vector = vector.unwrap_or_else(Vector::zero);
                Sentence {
                    is_need: need::expresses_need(&text),
                    categories: vector.each_likeness(&categories.names),
                    vector,
                    text,
                }
            })
            .collect();
        Ok(Self {
            title: view(
                sentences
                    .first()
                    .map_or_else(Vector::zero, |title| title.vector.clone()),
            ),
            whole: view(reading.whole),
            sentences,
        })
    }

    /// Returns the vectors of the sentences with one of the names, or that of the whole.
    pub(crate) fn about(&self, names: &[String]) -> Vec<&Vector> {
        let named = |sentence: &&Sentence| {
            names
                .iter()
                .any(|name| need::mentions(&sentence.text, name))
        };
        let found: Vec<_> = self
            .sentences
            .iter()
            .filter(named)
            .map(|one| &one.vector)
            .collect();
        if found.is_empty() {
            vec![&self.whole.vector]
        } else {
            found
        }
    }
}
