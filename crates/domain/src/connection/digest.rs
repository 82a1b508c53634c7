//! Digests: the Scans of an hour or a day in one mail.

use serde::{Deserialize, Serialize};

use crate::{Issue, json::Object};

const FIELD: &str = "digest";
const UTC: &str = "UTC";
const MAX_ZONE_BYTES: usize = 64;

/// When a Connection for e-mail sends what it gathered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    pub period: Period,
    /// Name in the IANA time zone database. Only PostgreSQL knows if it exists.
    pub time_zone: String,
}

/// Time that one digest is about. It ends at the full hour, or at midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Period {
    Hourly,
    Daily,
}

impl Period {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hourly => "HOURLY",
            Self::Daily => "DAILY",
        }
    }
}

/// Takes the field from the body: `Some(None)` if it is absent.
pub(super) fn digest(fields: &Object<'_>) -> Option<Option<Digest>> {
    let Some(value) = fields.take(FIELD) else {
        return Some(None);
    };
    let fields = fields.object(FIELD, Some(value))?;
    let period = fields.word("period", fields.require("period"));
    let time_zone = match fields.take("timeZone") {
        None => Some(UTC),
        given => fields.text("timeZone", given),
    };
    let time_zone = time_zone.filter(|name| {
        let is_named = is_zone_name(name);
        if !is_named {
            fields.report("timeZone", Issue::InvalidFormat);
        }
        is_named
    });
    fields.finish();
    Some(Some(Digest {
        period: period?,
        time_zone: time_zone?.to_owned(),
    }))
}

/// Rejects the forms of POSIX, such as `EST5EDT`, except those that are names too.
fn is_zone_name(name: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+');
    (1..=MAX_ZONE_BYTES).contains(&name.len()) && name.bytes().all(is_part)
}
