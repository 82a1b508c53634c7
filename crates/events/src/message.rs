//! A message: an event in its envelope, with encoding and decoding.

use std::str::FromStr;

use bytes::Bytes;
use domain::{Id, Timestamp};
use prost::Message as _;
use uuid::Uuid;

use crate::{
    AnyEvent, ManagerApplied, ManagerChanged, ManagerSubmitted, ScanCreated,
    proto::{self, envelope},
};

/// An event in its envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: Uuid,
    pub create_time: Timestamp,
    pub event: AnyEvent,
}

/// A message in the form that the bus carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    pub id: Uuid,
    /// The routing key.
    pub key: String,
    /// The bytes of an `Envelope`.
    pub payload: Bytes,
}

/// Reason why bytes are not a message of ours.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("not an envelope")]
    Malformed(#[source] prost::DecodeError),
    /// Empty, or written by a later version.
    #[error("the envelope has no event that this version knows")]
    UnknownEvent,
    #[error("`{field}` is missing or malformed")]
    Field { field: &'static str },
}

impl Message {
    /// Puts `event` into a new envelope with the current time.
    pub fn new(event: impl Into<AnyEvent>) -> Self {
        Self {
            id: Id::generate().to_uuid(),
            create_time: Timestamp::now(),
            event: event.into(),
        }
    }

    pub fn encode(&self) -> Encoded {
        let envelope = proto::Envelope {
            id: self.id.to_string(),
            create_time: Some(to_proto_time(self.create_time)),
            event: Some(to_proto_event(&self.event)),
        };
        Encoded {
            id: self.id,
            key: self.event.key().to_owned(),
            payload: envelope.encode_to_vec().into(),
        }
    }

    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let envelope = proto::Envelope::decode(payload).map_err(DecodeError::Malformed)?;
        Ok(Self {
            event: from_proto_event(envelope.event.ok_or(DecodeError::UnknownEvent)?)?,
            id: parse("id", &envelope.id)?,
            create_time: from_proto_time("create_time", envelope.create_time)?,
        })
    }
}

fn to_proto_event(event: &AnyEvent) -> envelope::Event {
    match event {
        AnyEvent::ManagerSubmitted(event) => {
            envelope::Event::ManagerSubmitted(proto::ManagerSubmitted {
                name: event.name.to_string(),
                generation: event.generation,
            })
        }
        AnyEvent::ManagerApplied(event) => envelope::Event::ManagerApplied(proto::ManagerApplied {
            name: event.name.to_string(),
            generation: event.generation,
            plan_version: event.plan_version,
        }),
        AnyEvent::ManagerChanged(event) => envelope::Event::ManagerChanged(proto::ManagerChanged {
            name: event.name.to_string(),
            plan_version: event.plan_version,
        }),
        AnyEvent::ScanCreated(event) => envelope::Event::ScanCreated(proto::ScanCreated {
            name: event.name.to_string(),
            create_time: Some(to_proto_time(event.create_time)),
        }),
    }
}

fn from_proto_event(event: envelope::Event) -> Result<AnyEvent, DecodeError> {
    Ok(match event {
        envelope::Event::ManagerSubmitted(event) => ManagerSubmitted {
            name: parse("manager_submitted.name", &event.name)?,
            generation: event.generation,
        }
        .into(),
        envelope::Event::ManagerApplied(event) => ManagerApplied {
            name: parse("manager_applied.name", &event.name)?,
            generation: event.generation,
            plan_version: event.plan_version,
        }
        .into(),
        envelope::Event::ManagerChanged(event) => ManagerChanged {
            name: parse("manager_changed.name", &event.name)?,
            plan_version: event.plan_version,
        }
        .into(),
        envelope::Event::ScanCreated(event) => ScanCreated {
            name: parse("scan_created.name", &event.name)?,
            create_time: from_proto_time("scan_created.create_time", event.create_time)?,
        }
        .into(),
    })
}

fn parse<T: FromStr>(field: &'static str, text: &str) -> Result<T, DecodeError> {
    text.parse().ok().ok_or(DecodeError::Field { field })
}

fn to_proto_time(time: Timestamp) -> prost_types::Timestamp {
    let micros = time.micros();
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0),
    }
}

/// Accepts only valid `google.protobuf.Timestamp` values: the nanoseconds are within a second.
fn from_proto_time(
    field: &'static str,
    time: Option<prost_types::Timestamp>,
) -> Result<Timestamp, DecodeError> {
    time.filter(|time| (0..1_000_000_000).contains(&time.nanos))
        .and_then(|time| {
            let micros = time.seconds.checked_mul(1_000_000)?;
            Timestamp::from_micros(micros.checked_add(i64::from(time.nanos) / 1000)?)
        })
        .ok_or(DecodeError::Field { field })
}

#[cfg(test)]
mod tests {
    use domain::{ManagerName, ScanName};
    use proptest::prelude::*;

    use super::*;

    fn manager() -> ManagerName {
        ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        }
    }

    fn scan() -> ScanName {
        ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan: Id::generate(),
        }
    }

    fn any_event() -> impl Strategy<Value = AnyEvent> {
        // The years 1 to 9999, which `google.protobuf.Timestamp` allows.
        let micros = -62_135_596_800_000_000..253_402_300_799_999_999_i64;
        prop_oneof![
            any::<i64>().prop_map(|generation| ManagerSubmitted {
                name: manager(),
                generation
            }
            .into()),
            any::<(i64, i64)>().prop_map(|(generation, plan_version)| ManagerApplied {
                name: manager(),
                generation,
                plan_version
            }
            .into()),
            any::<i64>().prop_map(|plan_version| ManagerChanged {
                name: manager(),
                plan_version
            }
            .into()),
            micros.prop_map(|micros| ScanCreated {
                name: scan(),
                create_time: Timestamp::from_micros(micros).unwrap()
            }
            .into()),
        ]
    }

    proptest! {
        #[test]
        fn message_round_trips(event in any_event()) {
            let message = Message::new(event);
            prop_assert_eq!(Message::decode(&message.encode().payload).unwrap(), message);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
            let _ = Message::decode(&bytes);
        }

        #[test]
        fn a_damaged_message_never_panics(
            event in any_event(),
            index in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut bytes = Message::new(event).encode().payload.to_vec();
            let index = index.index(bytes.len());
            bytes[index] = byte;
            let _ = Message::decode(&bytes);
            let _ = Message::decode(&bytes[..index]);
        }

        #[test]
        fn times_are_decoded_or_refused_without_panic(seconds in any::<i64>(), nanos in any::<i32>()) {
            let time = prost_types::Timestamp { seconds, nanos };
            let _ = from_proto_time("create_time", Some(time));
        }
    }

    #[test]
    fn event_of_a_later_version_is_distinguished_from_damage() {
        let mut envelope = Vec::new();
        prost::encoding::encode_key(
            99,
            prost::encoding::WireType::LengthDelimited,
            &mut envelope,
        );
        envelope.push(0);

        assert!(matches!(
            Message::decode(&envelope),
            Err(DecodeError::UnknownEvent)
        ));
    }

    #[test]
    fn error_names_a_field_without_a_valid_name() {
        let envelope = proto::Envelope {
            id: Uuid::nil().to_string(),
            create_time: Some(to_proto_time(Timestamp::UNIX_EPOCH)),
            event: Some(envelope::Event::ManagerChanged(proto::ManagerChanged {
                name: "namespaces/x".into(),
                plan_version: 1,
            })),
        };

        let error = Message::decode(&envelope.encode_to_vec()).unwrap_err();

        assert_eq!(
            error.to_string(),
            "`manager_changed.name` is missing or malformed"
        );
    }
}
