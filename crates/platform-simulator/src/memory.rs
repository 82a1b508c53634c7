//! The simulated platforms without a network, and with a clock that the test controls.
//!
//! It returns the same responses as the server, a hundred times faster: for property tests, which make
//! thousands of polls. Only the server has faults and counts requests.

use std::sync::Arc;

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{Fetch, FetchError, FetchLimits, Fetched};
use url::Url;

use super::{
    ask::Ask,
    bill::XBill,
    kinds,
    post::{NewPost, Published},
    world::World,
};

/// The base address of the platforms.
pub(super) const BASE: &str = "http://simulated.example";

/// A [`Fetch`] that returns the simulator's responses.
pub struct InMemory {
    world: World,
}

impl Default for InMemory {
    fn default() -> Self {
        Self {
            world: World::new(BASE.to_owned()),
        }
    }
}

impl InMemory {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    pub fn set_now(&self, now: Timestamp) {
        self.world.set_now(now);
    }

    pub fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        self.world.publish(posts)
    }

    /// Deletes a post, as its author would. Returns false if it does not exist.
    pub fn delete(&self, id: u64) -> bool {
        self.world.delete(id)
    }

    /// Changes a post's text. Returns false if it does not exist.
    pub fn edit(&self, id: u64, text: &str) -> bool {
        self.world.edit(id, text)
    }

    pub fn x_bill(&self) -> XBill {
        self.world.x.bill()
    }

    fn answer(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: Option<&str>,
    ) -> Result<Fetched, FetchError> {
        let (name, rest) = url.path()[1..].split_once('/').unwrap_or_default();
        let Some(answer) = kinds::answer_of(name) else {
            return Err(FetchError::Failed("no such platform here".into()));
        };
        let body = form.unwrap_or_default().as_bytes();
        let query = url.query().unwrap_or_default();
        let mut ask = Ask::new(rest, query, headers, body);
        ask.is_post = form.is_some();
        let reply = answer(&self.world, &ask);
        let lower = |(name, value): (&str, String)| (name.to_ascii_lowercase(), value);
        Ok(Fetched {
            status: reply.status,
            headers: reply.headers.into_iter().map(lower).collect(),
            body: reply.body.to_string().into_bytes(),
            final_url: url.clone(),
        })
    }
}

#[async_trait]
impl Fetch for InMemory {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        _limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.answer(url, headers, None)
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        _limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let form = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        self.answer(url, headers, Some(&form))
    }
}
