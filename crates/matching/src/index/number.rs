//! Numbers and positions within a segment.

/// Counts within a segment are bounded by its number of plans and the size of each.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a segment has at most 2^20 plans of 2 KiB of terms"
)]
pub(super) fn number(count: usize) -> u32 {
    count as u32
}
