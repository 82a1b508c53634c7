//! Limits the steps of phrase searches.
//!
//! A step looks at one word of a post. One search takes few, even in a text that repeats a single word. A plan has up to
//! 500 terms, each searched for several times, so all searches of a plan have one budget in each post. No text that a
//! person wrote spends it.
//!
//! The budget of a plan is fixed. If the plans of an account shared one, a change of one would change the decisions of
//! the others, and posts would have to be matched again with these.
//!
//! A search without steps left does not read on. It reports one occurrence if all words of the phrase occur: the
//! index only searches for phrases that it has found before, so no term is lost. Case-sensitive names count in any case then.

use std::cell::Cell;

/// Steps of all searches of a plan in a post, for its verdict and again for its explanation.
pub(crate) const OF_PLAN: u32 = 1 << 18;
/// Same as [`OF_PLAN`], in the index: only terms that occur take steps there, and an account may have 1,000 plans on one
/// feed.
pub(crate) const IN_INDEX: u32 = 1 << 15;

thread_local! {
    /// Steps that are left to the innermost call of [`within`]; `None` outside of any.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Runs `work`, whose searches take at most `limit` steps, and no more than an outer call has left. Returns the number of
/// steps taken.
pub(crate) fn within<T>(limit: u32, work: impl FnOnce() -> T) -> (T, u32) {
    /// Charges the outer call, also after a panic.
    struct Outer {
        left: Option<u32>,
        allowed: u32,
    }
    impl Outer {
        fn taken(&self) -> u32 {
            self.allowed.saturating_sub(left())
        }
    }
    impl Drop for Outer {
        fn drop(&mut self) {
            let taken = self.taken();
            LEFT.set(self.left.map(|left| left.saturating_sub(taken)));
        }
    }
    let outer = Outer {
        left: LEFT.get(),
        allowed: limit.min(left()),
    };
    LEFT.set(Some(outer.allowed));
    let result = work();
    let taken = outer.taken();
    (result, taken)
}

/// Returns the number of steps that a search may take.
pub(crate) fn left() -> u32 {
    LEFT.get().unwrap_or(u32::MAX)
}

pub(crate) fn take(steps: u32) {
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(steps)));
}

#[cfg(test)]
mod tests {
    use super::{OF_PLAN, left, take, within};

    /// A thread matches for weeks.
    #[test]
    fn what_ended_leaves_later_work_its_whole_budget() {
        for _ in 0..u32::MAX / OF_PLAN + 10 {
            let (allowed, taken) = within(OF_PLAN, || {
                let allowed = left();
                take(OF_PLAN);
                allowed
            });
            assert_eq!((allowed, taken), (OF_PLAN, OF_PLAN));
        }
        assert_eq!(left(), u32::MAX);
    }

    #[test]
    fn inner_work_takes_from_the_budget_of_the_outer() {
        let (_, taken) = within(100, || {
            assert_eq!(within(60, || take(80)).1, 60);
            assert_eq!(within(60, || take(80)).1, 40);
            assert_eq!(left(), 0);
        });
        assert_eq!(taken, 100);
        let panics = std::panic::catch_unwind(|| within(10, || panic!("a search")));
        assert!(panics.is_err());
        assert_eq!(left(), u32::MAX);
    }
}
