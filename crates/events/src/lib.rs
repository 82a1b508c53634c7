//! Events: what the services tell each other, as `proto-events/` publishes it.
//!
//! [`Message::decode`] turns bytes into an event whose names are names and whose times are times, or
//! says what is wrong with them; nothing behind it checks again. It reads whatever comes and never
//! panics. The routing key is no part of reading: a message that was put back from a dead-letter
//! queue comes under another one.
//!
//! [`event`] holds the events, [`message`] their way to bytes and back, [`trace`] the trace context that
//! travels beside them.

pub mod event;
pub mod message;
pub mod trace;

/// The wire format as generated, for whoever must write what [`Message`] would not.
pub mod proto {
    include!("generated/earshot.events.v1.rs");
}

pub use event::{
    AnyEvent, Event, EventSet, ManagerApplied, ManagerChanged, ManagerNews, ManagerSubmitted,
    ScanCreated,
};
pub use message::{DecodeError, Encoded, Message};
pub use trace::TraceContext;
