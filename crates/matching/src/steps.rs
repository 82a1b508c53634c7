//! Limits the steps of phrase searches.
//!
//! A step looks at one word of a post. One search takes few, even in a text that repeats a single word. A plan has up to
//! 500 terms, each searched for several times, so all searches of a plan have one budget in each post. No text that a
//! person wrote spends it.
//!
//! A search without steps left does not read on. It reports one occurrence if all words of the phrase occur: the
//! index only searches for phrases that it has found before, so no term is lost.

use std::cell::Cell;

/// Steps of all searches of a plan in a post, for its verdict and again for its explanation.
pub(crate) const OF_PLAN: u32 = 1 << 18;

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Runs `work`, whose searches take at most `limit` steps, and no more than an outer call has left. Returns the number of
/// steps taken.
pub(crate) fn within<T>(limit: u32, work: impl FnOnce() -> T) -> (T, u32) {
    /// Charges the outer call, also after a panic.
    struct Outer {
        left: u32,
        allowed: u32,
    }
    impl Outer {
        fn taken(&self) -> u32 {
            self.allowed.saturating_sub(LEFT.get())
        }
    }
    impl Drop for Outer {
        fn drop(&mut self) {
            LEFT.set(self.left - self.taken());
        }
    }
    let left = LEFT.get();
    let allowed = limit.min(left);
    let outer = Outer { left, allowed };
    LEFT.set(allowed);
    let result = work();
    let taken = outer.taken();
    (result, taken)
}

/// Returns the number of steps that a search may take.
pub(crate) fn left() -> u32 {
    LEFT.get()
}

pub(crate) fn take(steps: u32) {
    LEFT.set(LEFT.get().saturating_sub(steps));
}
