//! What a post says to a plan, in the terms of the layer that makes one score of it.

use domain::Focus;

use crate::{
    Plan, PostText, decision,
    model::{self, Features},
    model_file::Layer,
};

/// The parts of a score with a focus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signals {
    /// How much of the plan's terms the post has, up to where more says nothing new.
    pub topic: f64,
    /// How strongly the customer's own name stands out, 0 to 1.2.
    pub own_name: f64,
    /// How strongly the strongest of the watched names stands out, 0 to 1.2.
    pub watched_names: f64,
    /// How far the post is of the kind that the focus asks for, 0 to 6.
    pub head: f64,
    /// How many different phrases of the focus's lexicon occur, up to where more say nothing new.
    pub lexicon: f64,
}

impl Signals {
    /// `None` where no term and no name of the plan occurs. Costs as much as a decision.
    #[must_use]
    pub fn of(plan: &Plan, post: &PostText, focus: Focus) -> Option<Self> {
        let (of_plan, any) = decision::features(plan, post);
        let of_post = Features::of_post(focus, post);
        any.then(|| Self {
            topic: of_plan.topic.clamp(0.0, model::TOPIC_CAP),
            own_name: of_plan.own_name,
            watched_names: of_plan.watched_names,
            head: of_post.head,
            lexicon: of_post.lexicon.min(model::LEXICON_CAP),
        })
    }

    /// What each constant of a layer but its bias is multiplied with, in their order.
    #[must_use]
    pub fn slopes(&self) -> [f64; Layer::SLOPES] {
        let of = |strength: f64| [strength, strength * self.head, strength * self.lexicon];
        let [topic, own, watched] = [self.topic, self.own_name, self.watched_names].map(of);
        [
            topic[0], topic[1], topic[2], own[0], own[1], own[2], watched[0], watched[1],
            watched[2],
        ]
    }
}
