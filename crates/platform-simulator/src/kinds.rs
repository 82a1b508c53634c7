//! The kinds of platforms that are simulated.

use super::{
    ask::Answer,
    discourse, facebook, hackernews, jetstream, lemmy, linkedin, lobsters, mastodon,
    names::{
        BLUESKY, DISCOURSE, FACEBOOK, HACKER_NEWS, LEMMY, LINKEDIN, LOBSTERS, MASTODON, REDDIT, X,
    },
    reddit, x,
};

/// The simulators by the kind's name, which is also the first part of their paths. Feeds have no API: see `feeds`.
pub(super) const KINDS: [(&str, Answer); 10] = [
    (BLUESKY, jetstream::answer),
    (DISCOURSE, discourse::answer),
    (FACEBOOK, facebook::answer),
    (HACKER_NEWS, hackernews::answer),
    (LEMMY, lemmy::answer),
    (LINKEDIN, linkedin::answer),
    (LOBSTERS, lobsters::answer),
    (MASTODON, mastodon::answer),
    (REDDIT, reddit::answer),
    (X, x::answer),
];

pub(super) fn answer_of(name: &str) -> Option<Answer> {
    let found = KINDS.into_iter().find(|(own, _)| *own == name);
    found.map(|(_, answer)| answer)
}
