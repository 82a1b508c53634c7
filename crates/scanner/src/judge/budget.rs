//! How many questions may be asked: in a minute by the replica, in an hour for each Manager.
//!
//! Counted in windows that begin with the first question after the last one's end, so that no two looks at a
//! clock and nothing in the background are needed. Of each Manager of the last hour or two an entry is kept.

use std::{collections::HashMap, time::Duration};

use domain::ManagerName;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

pub(super) struct Budget {
    per_minute: u32,
    per_manager: u32,
    all: Window,
    managers: HashMap<ManagerName, Window>,
    swept: Option<Instant>,
}

#[derive(Default, Clone, Copy)]
struct Window {
    begin: Option<Instant>,
    asked: u32,
}

impl Budget {
    pub(super) fn new(per_minute: u32, per_manager_and_hour: u32) -> Self {
        Self {
            per_minute,
            per_manager: per_manager_and_hour,
            all: Window::default(),
            managers: HashMap::new(),
            swept: None,
        }
    }

    /// Takes one question for a Manager, if both bounds have one left.
    pub(super) fn take(&mut self, manager: ManagerName, now: Instant) -> bool {
        if self.swept.is_none_or(|swept| now - swept >= HOUR) {
            self.swept = Some(now);
            self.managers.retain(|_, window| !window.is_over(now, HOUR));
        }
        let own = self.managers.entry(manager).or_default();
        if own.left(self.per_manager, HOUR, now) == 0
            || self.all.left(self.per_minute, MINUTE, now) == 0
        {
            return false;
        }
        own.asked += 1;
        self.all.asked += 1;
        true
    }
}

impl Window {
    fn is_over(&self, now: Instant, length: Duration) -> bool {
        self.begin.is_none_or(|begin| now - begin >= length)
    }

    fn left(&mut self, bound: u32, length: Duration, now: Instant) -> u32 {
        if self.is_over(now, length) {
            *self = Self {
                begin: Some(now),
                asked: 0,
            };
        }
        bound.saturating_sub(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Id, ManagerName};
    use tokio::time::Instant;

    use super::Budget;

    fn manager() -> ManagerName {
        ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        }
    }

    #[test]
    fn a_minute_bounds_all_and_an_hour_each_manager() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut budget = Budget::new(5, 3);
        let (one, other, third) = (manager(), manager(), manager());
        let taken = (0..9).filter(|_| budget.take(one, at(0))).count();
        assert_eq!(taken, 3, "its own hour");
        let taken = (0..9).filter(|_| budget.take(other, at(1))).count();
        assert_eq!(taken, 2, "everybody's minute");
        assert!(!budget.take(third, at(59)));
        // The next minute: the first has spent its hour, and what was refused it did not count.
        assert!(!budget.take(one, at(61)));
        assert!(budget.take(other, at(61)) && !budget.take(other, at(62)));
        assert!(budget.take(third, at(62)));
        assert!(budget.take(one, at(3_600)));
    }

    #[test]
    fn managers_of_long_ago_are_forgotten() {
        let start = Instant::now();
        let mut budget = Budget::new(1_000, 1);
        for _ in 0..100 {
            assert!(budget.take(manager(), start));
        }
        assert!(budget.take(manager(), start + Duration::from_secs(3_700)));
        assert_eq!(budget.managers.len(), 1);
    }
}
