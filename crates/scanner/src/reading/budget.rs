//! Counts the posts that were judged for each Manager in a day, which begins with the first one.

use std::{collections::HashMap, time::Duration};

use domain::ManagerName;
use tokio::time::Instant;

const DAY: Duration = Duration::from_hours(24);
const SWEEP: Duration = Duration::from_hours(1);

pub(super) struct Budget {
    per_day: u32,
    days: HashMap<ManagerName, Day>,
    swept: Option<Instant>,
}

struct Day {
    begin: Instant,
    judged: u32,
}

impl Budget {
    pub(super) fn new(per_day: u32) -> Self {
        Self {
            per_day,
            days: HashMap::new(),
            swept: None,
        }
    }

    pub(super) fn is_spent(&self, manager: &ManagerName, now: Instant) -> bool {
        let day = self.days.get(manager).filter(|day| day.lasts(now));
        day.is_some_and(|day| day.judged >= self.per_day)
    }

    /// Counts a post that was judged.
    pub(super) fn charge(&mut self, manager: ManagerName, now: Instant) {
        if self.swept.is_none_or(|swept| now - swept >= SWEEP) {
            self.swept = Some(now);
            self.days.retain(|_, day| day.lasts(now));
        }
        let new = || Day {
            begin: now,
            judged: 0,
        };
        let day = self.days.entry(manager).or_insert_with(new);
        if !day.lasts(now) {
            *day = new();
        }
        day.judged = day.judged.saturating_add(1);
    }
}

impl Day {
    fn lasts(&self, now: Instant) -> bool {
        now - self.begin < DAY
    }
}

#[cfg(test)]
mod tests {
    use domain::{Id, ManagerName};
    use tokio::time::Instant;

    use super::{Budget, DAY, SWEEP};

    fn manager() -> ManagerName {
        ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        }
    }

    #[test]
    fn each_manager_has_its_own_posts_of_a_day() {
        let (one, other, start) = (manager(), manager(), Instant::now());
        let mut budget = Budget::new(2);
        for _ in 0..2 {
            assert!(!budget.is_spent(&one, start));
            budget.charge(one, start);
        }
        assert!(budget.is_spent(&one, start + DAY - SWEEP));
        assert!(!budget.is_spent(&other, start));
        assert!(!budget.is_spent(&one, start + DAY));
        budget.charge(one, start + DAY);
        assert!(!budget.is_spent(&one, start + DAY));
        budget.charge(one, start + DAY);
        assert!(budget.is_spent(&one, start + DAY));
    }

    #[test]
    fn managers_without_posts_are_forgotten() {
        let start = Instant::now();
        let mut budget = Budget::new(2);
        for _ in 0..100 {
            budget.charge(manager(), start);
        }
        budget.charge(manager(), start + DAY);
        assert_eq!(budget.days.len(), 1);
    }
}
