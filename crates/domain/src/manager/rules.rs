//! Rules of the deployment for Managers.

use crate::{address::AddressPolicy, feed::FeedRules};

/// Rules of the deployment.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    pub addresses: &'a AddressPolicy,
    pub feeds: &'a dyn FeedRules,
}
