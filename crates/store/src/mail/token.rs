//! Tokens of the links in mails. Each lets its bearer confirm one address of one Connection, or unsubscribe it.
//!
//! They are sealed with the keys of Connections. So no one can make one, and they work for as long as their key is
//! configured.

use domain::{ConnectionName, Id};
use uuid::Uuid;

use super::Digest;
use crate::seal::Sealer;

const ID_BYTES: usize = 16;

/// Action of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Confirm,
    Unsubscribe,
}

impl Purpose {
    /// Part of the link's address, and what the token is bound to.
    pub fn path(self) -> &'static str {
        match self {
            Self::Confirm => "mail/confirm",
            Self::Unsubscribe => "mail/unsubscribe",
        }
    }
}

pub fn seal(sealer: &Sealer, purpose: Purpose, name: ConnectionName, digest: Digest) -> String {
    let mut plain = Vec::new();
    plain.extend(name.namespace.to_uuid().as_bytes());
    plain.extend(name.connection.to_uuid().as_bytes());
    plain.extend(digest);
    hex::encode(sealer.seal(&plain, purpose.path()))
}

/// Returns whose token this is. `None` if it was not made for this purpose, or its key is gone.
pub fn open(sealer: &Sealer, purpose: Purpose, token: &str) -> Option<(ConnectionName, Digest)> {
    let sealed = hex::decode(token).ok()?;
    let plain = sealer.open(&sealed, purpose.path()).ok()?;
    let (namespace, rest) = plain.split_first_chunk::<ID_BYTES>()?;
    let (connection, digest) = rest.split_first_chunk::<ID_BYTES>()?;
    let name = ConnectionName {
        namespace: Id::from_uuid(Uuid::from_bytes(*namespace)),
        connection: Id::from_uuid(Uuid::from_bytes(*connection)),
    };
    Some((name, Digest::try_from(digest).ok()?))
}

#[cfg(test)]
mod tests {
    use domain::{ConnectionName, Id};

    use super::{Purpose, open, seal};
    use crate::seal::Sealer;

    #[test]
    fn token_is_good_for_its_purpose_alone() {
        let sealer = |byte| Sealer::new([("k".to_owned(), [byte; 32])]).unwrap();
        let name = ConnectionName {
            namespace: Id::generate(),
            connection: Id::generate(),
        };
        let token = seal(&sealer(1), Purpose::Confirm, name, [7; 32]);
        let opened = |byte, purpose, token: &str| open(&sealer(byte), purpose, token);
        let expected = Some((name, [7; 32]));
        assert_eq!(opened(1, Purpose::Confirm, &token), expected);
        assert_eq!(opened(1, Purpose::Unsubscribe, &token), None);
        assert_eq!(opened(2, Purpose::Confirm, &token), None);
        let last = if token.ends_with('0') { "1" } else { "0" };
        let changed = format!("{}{last}", &token[..token.len() - 1]);
        for wrong in [changed.as_str(), "", "zz", "é", &token[2..]] {
            assert_eq!(opened(1, Purpose::Confirm, wrong), None, "{wrong}");
        }
    }
}
