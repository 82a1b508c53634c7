//! Events between the services, as `proto-events/` defines them.
//!
//! [`Message::decode`] turns bytes into an event with typed names and times, or returns an error; no later code
//! checks them again. It accepts any bytes and never panics.
//!
//! [`event`] has the events, [`message`] their encoding, [`trace`] the trace context that is sent with them.

pub mod event;
pub mod message;
pub mod trace;

/// The generated wire format, for writing messages that [`Message`] does not allow.
pub mod proto {
    include!("generated/earshot.events.v1.rs");
}

pub use event::{
    AnyEvent, Event, EventSet, ManagerApplied, ManagerChanged, ManagerNews, ManagerSubmitted,
    ScanCreated,
};
pub use message::{DecodeError, Encoded, Message};
pub use trace::TraceContext;
