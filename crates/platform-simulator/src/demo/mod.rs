//! The demo: a fictional customer's page, and invented posts on mixed topics that are published one by one.
//!
//! The customer is Larkspur, backup software for small teams. About a third of the posts are by people who look
//! for such a product, have a problem that it solves, or compare products.

use std::{
    sync::{
        Arc,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use actix_web::{HttpResponse, Responder, web};
use serde::Deserialize;

use super::{Simulator, post::NewPost};

/// After all posts are published, they come again, this much slower.
const LATER_ROUNDS: u32 = 15;

/// An invented post, and whether Larkspur should care.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DemoPost {
    pub relevant: bool,
    #[serde(flatten)]
    pub post: NewPostOfDemo,
}

/// The part of [`NewPost`] that the list needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NewPostOfDemo {
    platform: String,
    community: Option<String>,
    title: String,
    text: Option<String>,
    author: String,
    url: Option<String>,
}

impl From<NewPostOfDemo> for NewPost {
    fn from(post: NewPostOfDemo) -> Self {
        Self {
            platform: post.platform,
            community: post.community,
            title: post.title,
            text: post.text,
            author: post.author,
            url: post.url,
            ..Self::default()
        }
    }
}

/// The built-in posts, in the order of publication.
pub fn posts() -> Vec<DemoPost> {
    serde_json::from_str(include_str!("posts.json")).unwrap_or_default()
}

/// The customer's page.
pub fn page() -> &'static str {
    include_str!("page.html")
}

/// Publishes the built-in posts one by one until it is dropped.
pub struct Feeder {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Feeder {
    /// Publishes one post every `interval`, the first one at once.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(simulator: &Simulator, interval: Duration) -> std::io::Result<Self> {
        let world = simulator.world();
        let (stop, stopped) = channel::<()>();
        let feed = move || {
            let mut wait = interval;
            loop {
                for demo in posts() {
                    Arc::clone(&world).publish(vec![demo.post.into()]);
                    if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                        return;
                    }
                }
                wait = interval.saturating_mul(LATER_ROUNDS);
            }
        };
        let thread = thread::Builder::new().name("demo-feeder".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(feed)?),
        })
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config
        .route("", web::get().to(serve))
        .route("/", web::get().to(serve));
}

async fn serve() -> impl Responder {
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .body(page())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_of_the_posts_is_relevant_and_some_come_early() {
        let posts = posts();
        let relevant = posts.iter().filter(|demo| demo.relevant).count();
        assert!((55..=70).contains(&posts.len()), "{}", posts.len());
        assert!((relevant * 3).abs_diff(posts.len()) <= 6, "{relevant}");
        let early = posts.iter().take(8);
        assert!(early.filter(|demo| demo.relevant).count() >= 4);
    }
}
