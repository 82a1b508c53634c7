//! The most requests in a minute that a Connection gets.

/// SQL expression over `connections` as `c`: `maxPerSecond`, or what the chat service takes from one webhook; NULL
/// without a limit. Discord takes 30 a minute for a channel: requests arrive unevenly, so two are left out.
macro_rules! per_minute {
    () => {
        "coalesce(c.max_per_second * 60, \
             CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 WHEN 'DISCORD' THEN 28 END)"
    };
}
pub(crate) use per_minute;
