//! Leaks that are planted on purpose: the search must find each of them.

use super::{
    canary::Side,
    watch::{Channel, Leak},
    world::{World, report},
};

/// Rounds until a planted leak must have been found.
const ROUNDS: usize = 6;

#[derive(Debug, Clone, Copy)]
pub(super) enum Plant {
    /// A Manager of B gets a nickname of A.
    Nickname,
    /// Scans of A become those of a Manager of B.
    MovedScans,
    /// Posts of B get a text of A; they are delivered when they are retried or replayed.
    Webhook,
    /// The log has a line about B's Namespace with a nickname of A.
    Log,
    /// The log has a header value.
    LoggedSecret,
    /// A span about B's Namespace has a nickname of A.
    Span,
}

impl Plant {
    pub(super) const ALL: [Self; 6] = [
        Self::Nickname,
        Self::MovedScans,
        Self::Webhook,
        Self::Log,
        Self::LoggedSecret,
        Self::Span,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nickname => "planted_nickname_in_an_answer_is_found",
            Self::MovedScans => "planted_scans_of_the_other_account_are_found",
            Self::Webhook => "planted_text_in_a_webhook_is_found",
            Self::Log => "planted_nickname_in_a_log_line_is_found",
            Self::LoggedSecret => "planted_secret_in_the_log_is_found",
            Self::Span => "planted_nickname_in_a_span_is_found",
        }
    }

    fn channel(self) -> Channel {
        match self {
            Self::Nickname | Self::MovedScans => Channel::Answer,
            Self::Webhook => Channel::Webhook,
            Self::Log | Self::LoggedSecret => Channel::Log,
            Self::Span => Channel::Trace,
        }
    }

    /// Plants the leak, and returns what its report must name.
    async fn plant(self, world: &World) -> String {
        let word = Side::A.content("planted", 1 + self as u64);
        match self {
            Self::Nickname => {
                world.query(&format!(
                    "UPDATE managers SET nickname = '{word}' WHERE nickname LIKE 'contentoulib%'"
                ));
            }
            Self::MovedScans => {
                world.query(&format!(
                    "UPDATE posts SET text = '{word}' WHERE title LIKE 'contentoulia%'; \
                     UPDATE scans AS s SET (namespace_id, manager_id) = \
                         (SELECT namespace_id, id FROM managers WHERE nickname LIKE 'content%' AND ( \
                         SELECT true FROM scans AS t JOIN posts AS p \
                         ON p.receive_time = t.post_receive_time AND p.id = t.post_id \
                         WHERE t.manager_id = managers.id AND p.title LIKE 'contentoulib%' LIMIT 1) \
                         ORDER BY id LIMIT 1) \
                     FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id \
                         AND p.text = '{word}'"
                ));
            }
            Self::Webhook => {
                world.query(&format!(
                    "UPDATE posts SET text = '{word}' WHERE title LIKE 'contentoulib%'"
                ));
            }
            Self::Log => {
                let namespace = world.names(Side::B, "namespaces")[0];
                world.write_to_log(&format!("INFO updated {namespace} nickname={word}"));
            }
            Self::Span => {
                let namespace = world.names(Side::B, "namespaces")[0];
                world.export_span(&format!("{namespace} {word}")).await;
            }
            Self::LoggedSecret => {
                let word = Side::A.secret("planted", 1);
                world.write_to_log(&format!("DEBUG sent x-secret: {word}"));
                return word;
            }
        }
        word
    }
}

/// Plants a leak, and goes on with random operations until it is found.
pub(super) async fn run(world: &mut World, plant: Plant) {
    world.watch.leaks.clear();
    for _ in 0..ROUNDS {
        // Again in each round: operations delete what it needs, and the first Scans may still be on their way.
        let word = plant.plant(world).await;
        for step in world.deck(false) {
            world.step(step).await;
            let mut leaks = world.watch.leaks.iter();
            let is_it = |leak: &&Leak| leak.message.contains(&word);
            let found = leaks.find(|leak| leak.channel == plant.channel() && is_it(leak));
            if let Some(leak) = found {
                let message: String = leak.message.chars().take(200).collect();
                println!("found: {message}");
                return;
            }
        }
    }
    panic!("{plant:?} was not found; {}", report(&world.watch.leaks));
}
