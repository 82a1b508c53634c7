//! The most requests in a minute that a Connection gets.

/// SQL expression over `connections` as `c`: `maxPerSecond`, or what the chat service takes from one webhook; NULL
/// without a limit. Discord takes 30 a minute for a channel, which is less than any `maxPerSecond`: requests arrive
/// unevenly, so two are left out.
macro_rules! per_minute {
    () => {
        "CASE c.format WHEN 'DISCORD' THEN 28 ELSE coalesce(c.max_per_second * 60, \
             CASE c.format WHEN 'SLACK' THEN 60 WHEN 'TEAMS' THEN 240 END) END"
    };
}
pub(crate) use per_minute;
