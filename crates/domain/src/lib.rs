//! Earshot's domain: resource names, resources, states, instructions, and the rules for valid requests.
//!
//! Everything here is a value or a pure rule: no I/O, no async, no SQL. Input is parsed once, at the edge, into
//! a type that proves that it is valid. Every broken rule is reported as an [`issue::Issue`] on the path of its
//! field, all of them at once.

mod error_chain;
mod source;
mod text;

pub mod address;
pub mod audit;
pub mod backfill;
pub mod connection;
pub mod delivery;
pub mod egress;
pub mod feed;
pub mod field;
pub mod filter;
pub mod host_name;
pub mod id;
pub mod instructions;
pub mod issue;
pub mod json;
pub mod key;
pub mod list;
pub mod manager;
pub mod name;
pub mod namespace;
pub mod order;
pub mod page;
pub mod patch;
pub mod plan_version;
pub mod post;
pub mod preview;
pub mod replay;
pub mod scan;
pub mod screen;
pub mod service_event;
pub mod stats;
pub mod time;
pub mod trial_delivery;
pub mod web_header;
pub mod web_url;

pub use audit::AuditEvent;
pub use connection::Connection;
pub use delivery::{Delivery, DeliveryState, DeliveryWithAttempts};
pub use error_chain::error_chain;
pub use feed::{FeedName, Reach};
pub use id::Id;
pub use instructions::{Focus, Instructions};
pub use issue::{FieldIssue, Issue, Issues};
pub use manager::{Manager, Sensitivity};
pub use name::{ConnectionName, DeliveryName, ManagerName, NamespaceName, ReplayName, ScanName};
pub use namespace::Namespace;
pub use plan_version::PlanVersion;
pub use post::{Post, PostType, Subforum, User};
pub use replay::Replay;
pub use scan::{Match, Place, Scan};
pub use service_event::{ServiceEvent, ServiceEventType};
pub use time::Timestamp;
