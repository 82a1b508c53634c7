//! How unusual a topic score is among ordinary posts.

/// Topic scores that one in ten, in a hundred and in a thousand ordinary posts reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TopicScale([f64; 3]);

/// Default for plans whose instructions contain no scale.
const USUAL: [f64; 3] = [0.6, 1.6, 3.0];
/// Minimum distance between scores, so that no single word makes a post unusual.
const MIN_STEP: f64 = 0.25;

impl TopicScale {
    /// The highest surprise.
    pub(crate) const MAX: f64 = 3.0;

    pub(crate) fn new(scores: Option<[f64; 3]>) -> Self {
        let mut scores = scores.unwrap_or(USUAL);
        let mut least = 0.0;
        for score in &mut scores {
            least += MIN_STEP;
            *score = score.max(least);
            least = *score;
        }
        Self(scores)
    }

    /// Returns the surprise in orders of magnitude: 1 where one ordinary post in ten scores as high, at most 3.
    pub(crate) fn surprise(&self, topic: f64) -> f64 {
        let mut before = 0.0;
        for (order, score) in [0.0, 1.0, 2.0].into_iter().zip(self.0) {
            if topic < score {
                return order + (topic - before).max(0.0) / (score - before);
            }
            before = score;
        }
        Self::MAX
    }

    /// Returns the lowest topic score with this surprise.
    pub(crate) fn topic(&self, surprise: f64) -> f64 {
        if surprise > Self::MAX {
            return f64::INFINITY;
        }
        let mut before = 0.0;
        for (order, score) in [0.0, 1.0, 2.0].into_iter().zip(self.0) {
            if surprise <= order + 1.0 {
                return before + (surprise - order).max(0.0) * (score - before);
            }
            before = score;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::TopicScale;

    #[test]
    fn surprise_counts_orders_of_magnitude() {
        let scale = TopicScale::new(Some([1.0, 2.0, 4.0]));
        for (topic, surprise) in [
            (-1.0, 0.0),
            (0.0, 0.0),
            (0.5, 0.5),
            (1.0, 1.0),
            (3.0, 2.5),
            (9.0, 3.0),
        ] {
            assert_eq!(scale.surprise(topic), surprise, "{topic}");
        }
        for surprise in [0.0, 0.3, 1.0, 1.7, 2.0, 2.9, 3.0] {
            assert!((scale.surprise(scale.topic(surprise)) - surprise).abs() < 1e-12);
        }
    }

    #[test]
    fn scores_of_a_background_without_the_terms_are_spread() {
        let scale = TopicScale::new(Some([0.0, 0.0, 0.0]));
        assert!(scale.surprise(0.3) < 2.0);
        assert_eq!(scale.surprise(0.75), 3.0);
    }
}
