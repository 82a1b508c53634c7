//! The HTTP client for addresses that customers name: seed pages, their feeds, webhook endpoints.
//!
//! Such an address may point anywhere, and whoever answers may be hostile. So every connection is
//! opened in one place, [`connect`], which resolves the name, refuses it when *any* address is not
//! permitted, and connects to the very address that it checked: between check and use nothing is
//! looked up again. Redirects are never followed unseen, everything read is bounded, and one
//! deadline spans a whole call from DNS on. No proxy, cookie or referer is taken from anywhere.
//!
//! [`Client::fetch`] reads a page and follows redirects, each judged anew. [`Client::exchange`] sends
//! one webhook and tells what came of it. [`Client::call`] asks a service and reads its answer; with
//! [`Client::for_operator`] one that the operator names, which may stand in a private network.
//!
//! It stands on hyper rather than on reqwest, since reqwest asks no resolver about literal
//! addresses, hides where the time of an exchange went, and decodes bodies without a bound.

mod call;
mod client;
mod connect;
mod decode;
mod error;
mod exchange;
mod fetch;
mod page;
mod resolve;
mod trace;

pub use client::Client;
pub use error::{Error, Failure};
pub use exchange::{Exchange, Request};
pub use fetch::Limits;
pub use http::Method;
pub use page::Page;
pub use resolve::{Resolve, SystemResolver};
pub use rustls::RootCertStore;
pub use trace::Phases;

/// How we name ourselves to strangers' servers.
pub const USER_AGENT: &str = concat!("Earshot/", env!("CARGO_PKG_VERSION"));
