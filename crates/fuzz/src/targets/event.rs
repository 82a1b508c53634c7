//! Events as the broker delivers them.

use events::Message;

/// The bytes of an envelope. A decoded event must survive encoding and decoding.
pub(crate) fn event(data: &[u8]) {
    let Ok(message) = Message::decode(data) else {
        return;
    };
    let again = Message::decode(&message.encode().payload);
    assert_eq!(
        again.ok(),
        Some(message),
        "the event changes when it is read back"
    );
}
