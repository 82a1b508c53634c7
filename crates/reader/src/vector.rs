/// Length of a vector.
pub const DIMENSIONS: usize = 384;

/// Direction of a text's meaning: a vector of length one.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector([f32; DIMENSIONS]);

impl Vector {
    /// Returns the mean of some tokens, scaled to length one; `None` without tokens.
    pub(crate) fn mean<'a>(tokens: impl IntoIterator<Item = &'a [f32]>) -> Option<Self> {
        let mut sum = [0.0_f32; DIMENSIONS];
        for token in tokens {
            for (sum, value) in sum.iter_mut().zip(token) {
                *sum += value;
            }
        }
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        (length > 0.0 && length.is_finite()).then(|| Self(sum.map(|value| value / length)))
    }

    pub(crate) fn new(values: [f32; DIMENSIONS]) -> Self {
        Self(values)
    }

    /// Returns the vector of a text without tokens, which is like no other.
    pub(crate) fn zero() -> Self {
        Self([0.0; DIMENSIONS])
    }

    /// Returns the cosine of the angle between two vectors: 1 if the texts mean the same, about 0 if they are unrelated.
    pub fn likeness(&self, other: &Self) -> f32 {
        // Several sums, so that the compiler may use wide registers.
        const SUMS: usize = 16;
        let mut sums = [0.0_f32; SUMS];
        let (own, _) = self.0.as_chunks::<SUMS>();
        let (others, _) = other.0.as_chunks::<SUMS>();
        for (own, others) in own.iter().zip(others) {
            for ((sum, a), b) in sums.iter_mut().zip(own).zip(others) {
                *sum += a * b;
            }
        }
        sums.iter().sum()
    }

    pub(crate) fn each_likeness(&self, others: &[Self]) -> Vec<f32> {
        others.iter().map(|other| self.likeness(other)).collect()
    }

    /// Returns the numbers, for a learned layer.
    pub fn values(&self) -> &[f32; DIMENSIONS] {
        &self.0
    }
}
