//! Events as the broker brings them.

use events::Message;

/// Bytes of an envelope. What is read is written and read as the same.
pub(crate) fn event(data: &[u8]) {
    let Ok(message) = Message::decode(data) else {
        return;
    };
    let again = Message::decode(&message.encode().payload);
    assert_eq!(
        again.ok(),
        Some(message),
        "the event is another when it is read back"
    );
}
