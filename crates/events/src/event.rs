//! The events, one type each, and sets of them for readers of several events.

use domain::{ManagerName, ScanName, Timestamp};

/// An event with its routing key.
pub trait Event: Sized + Into<AnyEvent> + Send + 'static {
    /// The routing key, for example `manager.submitted`.
    const KEY: &'static str;

    /// Returns the event itself if `event` is of this kind.
    fn from_any(event: AnyEvent) -> Option<Self>;
}

/// The events of one reader: an [`Event`], or an enum of several.
pub trait EventSet: Sized + Send + 'static {
    /// The routing keys to bind.
    const KEYS: &'static [&'static str];

    fn from_any(event: AnyEvent) -> Option<Self>;
}

impl<E: Event> EventSet for E {
    const KEYS: &'static [&'static str] = &[E::KEY];

    fn from_any(event: AnyEvent) -> Option<Self> {
        E::from_any(event)
    }
}

macro_rules! events {
    ($($(#[$meta:meta])* $name:ident = $key:literal { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ })+) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Clone, PartialEq, Eq)]
            pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }

            impl From<$name> for AnyEvent {
                fn from(event: $name) -> Self {
                    Self::$name(event)
                }
            }

            impl Event for $name {
                const KEY: &'static str = $key;

                fn from_any(event: AnyEvent) -> Option<Self> {
                    match event {
                        AnyEvent::$name(event) => Some(event),
                        _ => None,
                    }
                }
            }
        )+

        /// Any event that this version knows.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum AnyEvent { $($name($name),)+ }

        impl AnyEvent {
            /// The routing key of the event.
            pub fn key(&self) -> &'static str {
                match self { $(Self::$name(_) => $name::KEY,)+ }
            }
        }

        /// The full name of the message type with this routing key.
        pub fn type_name(key: &str) -> Option<&'static str> {
            match key {
                $($key => Some(concat!("earshot.events.v1.", stringify!($name))),)+
                _ => None,
            }
        }

        impl EventSet for AnyEvent {
            const KEYS: &'static [&'static str] = &[$($key),+];

            fn from_any(event: AnyEvent) -> Option<Self> {
                Some(event)
            }
        }
    };
}

events! {
    /// A Manager was created or its input changed: it must be compiled.
    ManagerSubmitted = "manager.submitted" {
        name: ManagerName,
        /// Generation of the submitted input. If the database has another one, the event is stale.
        generation: i64,
    }
    /// A Manager was compiled, and its instructions are stored.
    ManagerApplied = "manager.applied" {
        name: ManagerName,
        generation: i64,
        /// The plan version after the commit.
        plan_version: i64,
    }
    /// A Manager was enabled, disabled or deleted, or its notices changed.
    ManagerChanged = "manager.changed" {
        name: ManagerName,
        /// The plan version after the commit.
        plan_version: i64,
    }
    /// A post matched a Manager: its Scan must be delivered.
    ScanCreated = "scan.created" {
        name: ScanName,
        create_time: Timestamp,
    }
}

/// The events that a scanner needs to keep its index fresh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ManagerNews {
    Applied(ManagerApplied),
    Changed(ManagerChanged),
}

impl ManagerNews {
    /// The Manager of the event.
    pub fn name(&self) -> ManagerName {
        match self {
            Self::Applied(event) => event.name,
            Self::Changed(event) => event.name,
        }
    }

    /// The plan version of an index that includes this event.
    pub fn plan_version(&self) -> i64 {
        match self {
            Self::Applied(event) => event.plan_version,
            Self::Changed(event) => event.plan_version,
        }
    }
}

impl EventSet for ManagerNews {
    const KEYS: &'static [&'static str] = &[ManagerApplied::KEY, ManagerChanged::KEY];

    fn from_any(event: AnyEvent) -> Option<Self> {
        match event {
            AnyEvent::ManagerApplied(event) => Some(Self::Applied(event)),
            AnyEvent::ManagerChanged(event) => Some(Self::Changed(event)),
            AnyEvent::ManagerSubmitted(_) | AnyEvent::ScanCreated(_) => None,
        }
    }
}
