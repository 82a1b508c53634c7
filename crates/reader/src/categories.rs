use crate::{DIMENSIONS, Vector};

/// Number of questions that names of goods are put into.
pub(crate) const QUESTIONS: usize = 2;
/// A category this near to an offer is not another good.
const NEAR: f32 = 0.6;

/// Kinds of goods and subjects that offers compete with.
#[derive(Debug)]
pub(crate) struct Categories {
    /// Forms of the questions; `{}` stands for a name.
    pub(crate) forms: [String; QUESTIONS],
    pub(crate) names: Vec<Vector>,
    /// The categories in each question.
    pub(crate) questions: [Vec<Vector>; QUESTIONS],
}

impl Categories {
    /// Takes the forms, a line each, and the vectors: first those of the names, then those of each question.
    pub(crate) fn parse(forms: &str, numbers: &[f32]) -> Option<Self> {
        let forms: Vec<_> = forms.lines().map(str::to_owned).collect();
        let (vectors, []) = numbers.as_chunks::<DIMENSIONS>() else {
            return None;
        };
        let count = vectors.len() / (1 + QUESTIONS);
        if count == 0 || vectors.len() % (1 + QUESTIONS) != 0 {
            return None;
        }
        let mut tables = vectors
            .chunks(count)
            .map(|table| table.iter().copied().map(Vector::new).collect());
        Some(Self {
            forms: forms.try_into().ok()?,
            names: tables.next()?,
            questions: [tables.next()?, tables.next()?],
        })
    }

    /// Returns the numbers of the categories that are other goods than all of these offers.
    pub(crate) fn others(&self, offers: &[Vector]) -> Vec<usize> {
        let is_other = |name: &Vector| offers.iter().all(|offer| name.likeness(offer) < NEAR);
        (0..self.names.len())
            .filter(|at| is_other(&self.names[*at]))
            .collect()
    }
}
