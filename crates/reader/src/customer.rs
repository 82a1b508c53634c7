use crate::{
    Encoder, ReadError, Vector,
    categories::{Categories, QUESTIONS},
};

/// Offers that are read; more say little new and take time.
pub const MAX_OFFERS: usize = 60;

/// Vectors of what a Manager's customer sells or watches. The scanner keeps them until what is sold changes, as far as memory allows.
#[derive(Debug, Clone)]
pub struct Customer {
    pub(crate) brief: Vector,
    pub(crate) offers: Vec<Vector>,
    /// The offers in each question.
    pub(crate) questions: [Vec<Vector>; QUESTIONS],
    /// Numbers of the categories that the customer does not sell.
    pub(crate) others: Vec<usize>,
    /// Names that the focus asks about, in lower case.
    pub(crate) names: Vec<String>,
}

impl Customer {
    pub(crate) fn read(
        encoder: &Encoder,
        categories: &Categories,
        brief: &str,
        offers: &[impl AsRef<str>],
        names: &[impl AsRef<str>],
    ) -> Result<Self, ReadError> {
        let offers = &offers[..offers.len().min(MAX_OFFERS)];
        if offers.is_empty() {
            return Err(ReadError::NoOffers);
        }
        let read = |form: &str| -> Result<Vec<Vector>, ReadError> {
            let texts = offers
                .iter()
                .map(|offer| form.replace("{}", offer.as_ref()));
            texts
                .map(|text| Ok(encoder.read([text.as_str()])?.whole))
                .collect()
        };
        let [first, second] = &categories.forms;
        let vectors = read("{}")?;
        Ok(Self {
            brief: encoder.read([brief])?.whole,
            questions: [read(first)?, read(second)?],
            others: categories.others(&vectors),
            offers: vectors,
            names: names
                .iter()
                .map(|name| name.as_ref().to_lowercase())
                .filter(|name| !name.is_empty())
                .collect(),
        })
    }

    /// Returns the approximate memory that it takes.
    pub fn bytes(&self) -> usize {
        let questions = self.questions.iter().map(Vec::len);
        let vectors = 1 + self.offers.len() + questions.sum::<usize>();
        let names = self.names.iter().map(|name| size_of_val(name) + name.len());
        vectors * size_of::<Vector>() + size_of_val(&*self.others) + names.sum::<usize>()
    }
}
