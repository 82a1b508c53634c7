//! Timelines that an instance lets anonymous clients read: `configuration.timelines_access` of
//! `/api/v2/instance`, since 4.5.
//!
//! A disabled timeline returns an empty list, the same as a timeline without posts, so the setting is read
//! first. If an instance does not have the setting, everything counts as allowed: it will refuse by itself.

use serde_json::Value;

use super::Timeline;
use crate::PollError;

/// The timelines that an instance shows, and whose posts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Access {
    live: Sides,
    hashtag: Sides,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sides {
    local: Side,
    remote: Side,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Side {
    #[default]
    Public,
    Authenticated,
    Disabled,
}

/// The part of a timeline to request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    Local,
    Remote,
}

impl Part {
    /// Returns what a customer must know about a timeline that is not shown whole.
    pub(super) fn notice(self) -> Option<&'static str> {
        match self {
            Self::Whole => None,
            Self::Local => Some("The instance shows posts of its own members alone."),
            Self::Remote => Some("The instance shows posts of other instances alone."),
        }
    }
}

impl Access {
    pub(super) fn read(instance: &Value) -> Self {
        let access = instance.pointer("/configuration/timelines_access");
        let sides = |name: &str| {
            let side = |side: &str| {
                let word = access.and_then(|access| access.get(name)?.get(side)?.as_str());
                match word {
                    Some("authenticated") => Side::Authenticated,
                    Some("disabled") => Side::Disabled,
                    _ => Side::Public,
                }
            };
            Sides {
                local: side("local"),
                remote: side("remote"),
            }
        };
        Self {
            live: sides("live_feeds"),
            hashtag: sides("hashtag_feeds"),
        }
    }

    /// The readable part of `timeline`.
    pub(super) fn of(&self, timeline: &Timeline<'_>, with_token: bool) -> Result<Part, PollError> {
        let (sides, name) = match timeline {
            Timeline::Public => (self.live, "the public timeline"),
            Timeline::Tag(_) => (self.hashtag, "timelines of hashtags"),
        };
        let open = |side| side == Side::Public || (side == Side::Authenticated && with_token);
        match (open(sides.local), open(sides.remote)) {
            (true, true) => Ok(Part::Whole),
            (true, false) => Ok(Part::Local),
            (false, true) => Ok(Part::Remote),
            (false, false) if [sides.local, sides.remote].contains(&Side::Authenticated) => {
                Err(PollError::Refused {
                    status: 401,
                    advice: "the instance shows this timeline to logged-in users alone; set `token`",
                })
            }
            (false, false) => {
                let reason = format!("the instance has turned off {name}");
                Err(PollError::NotFound(reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn access(live: [&str; 2], hashtag: [&str; 2]) -> Access {
        let sides = |[local, remote]: [&str; 2]| json!({"local": local, "remote": remote});
        Access::read(&json!({"configuration": {"timelines_access": {
            "live_feeds": sides(live), "hashtag_feeds": sides(hashtag)}}}))
    }

    #[test]
    fn disabled_timelines_are_reported_before_a_request() {
        let closed = access(["disabled", "disabled"], ["public", "disabled"]);
        assert!(matches!(
            closed.of(&Timeline::Public, true),
            Err(PollError::NotFound(_))
        ));
        assert_eq!(closed.of(&Timeline::Tag("a"), false).unwrap(), Part::Local);
        let members = access(["authenticated", "authenticated"], ["disabled", "public"]);
        let refused = members.of(&Timeline::Public, false);
        assert!(matches!(
            refused,
            Err(PollError::Refused { status: 401, .. })
        ));
        assert_eq!(members.of(&Timeline::Public, true).unwrap(), Part::Whole);
        assert_eq!(
            members.of(&Timeline::Tag("a"), false).unwrap(),
            Part::Remote
        );
        for silent in [
            json!(null),
            json!({"configuration": {"timelines_access": {"live_feeds": 7}}}),
        ] {
            let part = Access::read(&silent).of(&Timeline::Public, false);
            assert_eq!(part.unwrap(), Part::Whole);
        }
    }
}
