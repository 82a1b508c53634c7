//! The HTTP client for addresses from customers: seed pages, their feeds, webhook endpoints.
//!
//! Such an address may point anywhere, and the server may be hostile. So every connection is opened in one
//! place, [`connect`]. It resolves the name, refuses it if *any* address is not permitted, and connects to
//! exactly the address that it checked: there is no second lookup between check and use. Redirects are never
//! followed unchecked, everything read is bounded, and one deadline covers a whole call from DNS on. No
//! cookie or referer is used, and a proxy only if the operator sets one.
//!
//! [`Client::fetch`] reads a page and follows redirects, each checked again. [`Client::exchange`] sends one
//! webhook and returns the result.
//!
//! It uses hyper instead of reqwest, because reqwest does not resolve literal addresses through a resolver,
//! hides the timing of an exchange, and decodes bodies without a bound.

mod body;
mod client;
mod connect;
mod connection;
mod decode;
mod error;
mod exchange;
mod fetch;
pub mod large;
mod page;
mod resolve;
mod trace;
mod tunnel;

pub use client::Client;
pub use error::{Error, Failure};
pub use exchange::{Exchange, Request};
pub use fetch::Limits;
pub use http::Method;
pub use page::Page;
pub use resolve::{Resolve, SystemResolver};
pub use rustls::RootCertStore;
pub use trace::Phases;
pub use tunnel::open_tunnel;

/// Our user agent for requests to other servers.
pub const USER_AGENT: &str = concat!("Earshot/", env!("CARGO_PKG_VERSION"));
