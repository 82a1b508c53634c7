//! The gate's view of a post, for training.

use crate::{
    Plan, PostText,
    model::{self, Features},
    model_file::Gate,
    strength,
};

/// The parts of the gate's sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signals {
    /// How unusual this topic score is, 0 to 3.
    pub surprise: f64,
    /// How strongly the customer's own name stands out, 0 to 1.2.
    pub own_name: f64,
    /// How strongly the strongest of the watched names stands out, 0 to 1.2.
    pub watched_names: f64,
    /// How far the post is of the kind that the focus asks for, 0 to 6.
    pub head: f64,
    /// Number of different cues of the focus, limited to the number above which more say nothing new.
    pub lexicon: f64,
}

impl Signals {
    /// Returns `None` without a focus, and where no term and no name of the plan occurs.
    pub fn of(plan: &Plan, post: &PostText) -> Option<Self> {
        let (gate, of_plan, any) = strength::gate_features(plan, post)?;
        let of_post = Features::of_post(gate, post);
        any.then(|| Self {
            surprise: of_plan.surprise,
            own_name: of_plan.own_name,
            watched_names: of_plan.watched_names,
            head: of_post.head,
            lexicon: of_post.lexicon.min(model::LEXICON_CAP),
        })
    }

    /// Returns the factor of each slope of a gate, in their order.
    pub fn slopes(&self) -> [f64; Gate::SLOPES] {
        let of = |strength: f64| [strength, strength * self.head, strength * self.lexicon];
        let [topic, own, watched] = [
            model::excess(self.surprise),
            self.own_name,
            self.watched_names,
        ]
        .map(of);
        [
            topic[0], topic[1], topic[2], own[0], own[1], own[2], watched[0], watched[1],
            watched[2],
        ]
    }
}
