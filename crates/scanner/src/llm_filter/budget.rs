//! Chooses the candidates that the model is asked about.
//!
//! Two limits hold: questions a minute for the replica, and questions a day for each Manager. An account may use at
//! most as many of a minute's questions as it leaves for others. A day is a window of 24 hours. It begins with the
//! Manager's first candidate after the end of the day before, so nothing runs in the background.
//!
//! The candidates of one poll are taken most uncertain first. A Manager's questions must also last for the
//! day: if the first candidates of the morning used them up, the most uncertain ones of the evening would
//! go without. The rule, for each candidate:
//!
//! 1. Estimate how many candidates are still to come today: the candidates an hour of about the last day,
//!    times the hours left, plus those of this poll.
//! 2. The questions left, divided by that number, are the share of candidates that the budget can afford.
//! 3. Ask if the candidate belongs to that share of the last [`RECENT`] candidates, by uncertainty.
//!
//! Estimates correct themselves: if fewer candidates come than expected, the affordable share rises until
//! each candidate is asked about. With enough budget the share is always above 1.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use domain::{Id, ManagerName};
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// Candidates of a Manager whose uncertainty is remembered.
const RECENT: usize = 128;

/// A candidate that the model may be asked about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    pub account: Id,
    pub manager: ManagerName,
    /// See [`uncertainty`](crate::uncertainty).
    pub uncertainty: f64,
}

/// Questions that may be asked, and what is known about the candidates to expect.
pub struct Budget {
    per_minute: u32,
    per_manager_per_day: u32,
    minute: Window,
    /// Questions of each account in this minute.
    accounts: HashMap<Id, u32>,
    managers: HashMap<ManagerName, ManagerBudget>,
    swept: Option<Instant>,
}

struct ManagerBudget {
    day: Window,
    rate: CandidateRate,
    /// Uncertainty of the last candidates.
    recent: VecDeque<f64>,
}

/// Number of questions since a period began.
#[derive(Default, Clone, Copy)]
struct Window {
    begin: Option<Instant>,
    asked: u32,
}

/// Rate of candidates. Older ones count less.
struct CandidateRate {
    begin: Instant,
    updated: Instant,
    decayed: f64,
}

impl Budget {
    pub fn new(per_minute: u32, per_manager_per_day: u32) -> Self {
        Self {
            per_minute,
            per_manager_per_day,
            minute: Window::default(),
            accounts: HashMap::new(),
            managers: HashMap::new(),
            swept: None,
        }
    }

    /// Returns the positions of the candidates of a poll that are to be asked about, most uncertain
    /// first, and counts their questions.
    pub fn admit(&mut self, poll: &[Request], now: Instant) -> Vec<usize> {
        self.sweep(now);
        let mut undecided: HashMap<ManagerName, u32> = HashMap::new();
        for request in poll {
            let manager = self.managers.entry(request.manager);
            let manager = manager.or_insert_with(|| ManagerBudget::new(now));
            manager.record(request.uncertainty);
            *undecided.entry(request.manager).or_default() += 1;
        }
        let candidates = undecided.clone();

        let mut order: Vec<usize> = (0..poll.len()).collect();
        order.sort_by(|a, b| poll[*b].uncertainty.total_cmp(&poll[*a].uncertainty));
        order.retain(|nth| {
            let request = &poll[*nth];
            let (Some(manager), Some(undecided)) = (
                self.managers.get_mut(&request.manager),
                undecided.get_mut(&request.manager),
            ) else {
                return false;
            };
            let limit = self.per_manager_per_day;
            let is_affordable = manager.affords(request.uncertainty, *undecided, limit, now);
            *undecided -= 1;
            let left = self.minute.left(self.per_minute, MINUTE, now);
            if self.minute.asked == 0 {
                self.accounts.clear();
            }
            let of_account = self.accounts.entry(request.account).or_default();
            if !is_affordable || *of_account >= left {
                return false;
            }
            manager.day.asked += 1;
            self.minute.asked += 1;
            *of_account += 1;
            true
        });

        // After the decisions, because the candidates of this poll say little about those to come.
        for (manager, count) in candidates {
            if let Some(manager) = self.managers.get_mut(&manager) {
                manager.rate.add(count, now);
            }
        }
        order
    }

    /// Gives back a question that was admitted but not sent.
    pub fn release(&mut self, account: Id, manager: &ManagerName) {
        self.minute.asked = self.minute.asked.saturating_sub(1);
        if let Some(asked) = self.accounts.get_mut(&account) {
            *asked = asked.saturating_sub(1);
        }
        if let Some(manager) = self.managers.get_mut(manager) {
            manager.day.asked = manager.day.asked.saturating_sub(1);
        }
    }

    /// Forgets Managers without a candidate in the last two days.
    fn sweep(&mut self, now: Instant) {
        if self.swept.is_none_or(|swept| now - swept >= HOUR) {
            self.swept = Some(now);
            self.managers
                .retain(|_, manager| now - manager.rate.updated < 2 * DAY);
        }
    }
}

impl ManagerBudget {
    fn new(now: Instant) -> Self {
        Self {
            day: Window::default(),
            rate: CandidateRate {
                begin: now,
                updated: now,
                decayed: 0.0,
            },
            recent: VecDeque::new(),
        }
    }

    fn record(&mut self, uncertainty: f64) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(uncertainty);
    }

    /// Decides by the rule of the module. `undecided` candidates of this poll are left, with this one.
    #[expect(clippy::cast_precision_loss, reason = "at most RECENT")]
    fn affords(&mut self, uncertainty: f64, undecided: u32, limit: u32, now: Instant) -> bool {
        let left = self.day.left(limit, DAY, now);
        if left == 0 {
            return false;
        }
        let hours_left = hours(self.day.remaining(DAY, now));
        let to_come = self.rate.per_hour(limit, now) * hours_left + f64::from(undecided);
        let affordable_share = f64::from(left) / to_come;
        let more_uncertain = self.recent.iter().filter(|other| **other > uncertainty);
        (more_uncertain.count() as f64) < affordable_share * self.recent.len() as f64
    }
}

impl CandidateRate {
    fn add(&mut self, count: u32, now: Instant) {
        self.decayed = self.decayed_at(now) + f64::from(count);
        self.updated = now;
    }

    fn decayed_at(&self, now: Instant) -> f64 {
        let age = hours(now - self.updated);
        self.decayed * (-age / hours(DAY)).exp()
    }

    /// Returns the candidates an hour. A new Manager starts with an assumed hour of as many candidates as the limit
    /// allows. Without it, the first candidates would look like a flood.
    fn per_hour(&self, limit: u32, now: Instant) -> f64 {
        let day = hours(DAY);
        let count = self.decayed_at(now) + f64::from(limit) / day;
        let age = hours(now - self.begin) + 1.0;
        count / (day * (1.0 - (-age / day).exp()))
    }
}

fn hours(duration: Duration) -> f64 {
    duration.as_secs_f64() / HOUR.as_secs_f64()
}

impl Window {
    /// Returns the questions left, in a new window if this one is over.
    fn left(&mut self, limit: u32, length: Duration, now: Instant) -> u32 {
        if self.begin.is_none_or(|begin| now - begin >= length) {
            *self = Self {
                begin: Some(now),
                asked: 0,
            };
        }
        limit.saturating_sub(self.asked)
    }

    fn remaining(&self, length: Duration, now: Instant) -> Duration {
        let begin = self.begin.unwrap_or(now);
        length.saturating_sub(now - begin)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::{Id, ManagerName};
    use tokio::time::Instant;

    use super::{Budget, DAY, HOUR, MINUTE, Request};

    fn manager() -> ManagerName {
        ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        }
    }

    fn poll(manager: ManagerName, uncertainties: &[f64]) -> Vec<Request> {
        let requests = uncertainties.iter().map(|uncertainty| Request {
            account: Id::NIL,
            manager,
            uncertainty: *uncertainty,
        });
        requests.collect()
    }

    /// Pseudo-random uncertainties between 0 and 1.
    fn uncertainties() -> impl Iterator<Item = f64> {
        (1_u32..).map(|nth| f64::from(nth.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24))
    }

    #[test]
    fn daily_budget_is_never_exceeded() {
        for limit in [0, 1, 5, 20, 100] {
            for every in [1, 60, 600, 7_200] {
                for size in [1, 7, 150] {
                    let start = Instant::now();
                    let one = manager();
                    let mut budget = Budget::new(u32::MAX, limit);
                    let mut values = uncertainties();
                    let mut asked = 0;
                    for nth in 0..(86_400 / every).min(200) {
                        let values: Vec<f64> = values.by_ref().take(size).collect();
                        let now = start + Duration::from_secs(nth * every);
                        asked += budget.admit(&poll(one, &values), now).len();
                    }
                    assert!(asked <= limit as usize, "{limit} {every} {size}: {asked}");
                    assert!(limit == 0 || asked > 0, "{limit} {every} {size}");
                }
            }
        }
    }

    #[test]
    fn minute_limit_holds_for_all_managers_together() {
        let start = Instant::now();
        let mut budget = Budget::new(3, 1_000);
        let (one, other) = (manager(), manager());
        let third = [Request {
            account: Id::generate(),
            ..poll(manager(), &[0.9])[0]
        }];
        assert_eq!(budget.admit(&poll(one, &[0.5, 0.9]), start), [1, 0]);
        assert!(budget.admit(&poll(other, &[0.9]), start).is_empty());
        assert_eq!(budget.admit(&third, start), [0]);
        assert!(budget.admit(&third, start).is_empty());
        let next = start + MINUTE;
        assert_eq!(budget.admit(&poll(other, &[0.9]), next), [0]);
    }

    #[test]
    fn most_uncertain_candidates_of_a_poll_come_first() {
        let mut budget = Budget::new(1_000, 1_000);
        let mut requests = poll(manager(), &[0.1, 0.9, 0.5]);
        requests.extend(poll(manager(), &[0.2, 0.8]));
        assert_eq!(budget.admit(&requests, Instant::now()), [1, 4, 2, 3, 0]);

        let mut budget = Budget::new(1_000, 2);
        let admitted = budget.admit(&poll(manager(), &[0.1, 0.9, 0.5, 0.7]), Instant::now());
        assert_eq!(admitted[0], 1);
        assert!(admitted.len() <= 2 && !admitted.contains(&0) && !admitted.contains(&2));
    }

    #[test]
    fn budget_lasts_for_the_day_and_goes_to_the_most_uncertain() {
        let start = Instant::now();
        let one = manager();
        let mut budget = Budget::new(u32::MAX, 20);
        let mut values = uncertainties();
        let (mut asked, mut seen) = (Vec::new(), Vec::new());
        // Two days to learn the rate of 200 candidates a day, and the third to look at.
        for nth in 0..600 {
            let uncertainty = values.next().unwrap();
            let now = start + nth * DAY / 200;
            let admitted = !budget.admit(&poll(one, &[uncertainty]), now).is_empty();
            if nth >= 400 {
                seen.push(uncertainty);
                if admitted {
                    asked.push((nth, uncertainty));
                }
            }
        }
        assert!((15..=20).contains(&asked.len()), "{}", asked.len());
        let morning = asked.iter().filter(|(nth, _)| *nth < 500).count();
        assert!((5..=15).contains(&morning), "{morning} of {}", asked.len());
        seen.sort_by(f64::total_cmp);
        let upper_third = seen[133];
        let uncertain = asked.iter().filter(|(_, value)| *value > upper_third);
        assert!(uncertain.count() * 10 >= asked.len() * 9, "{asked:?}");
    }

    #[test]
    fn all_candidates_are_asked_about_if_the_budget_suffices() {
        let start = Instant::now();
        let one = manager();
        let mut budget = Budget::new(u32::MAX, 100);
        for (nth, uncertainty) in (0..120).zip(uncertainties()) {
            let now = start + nth * HOUR / 2;
            assert_eq!(budget.admit(&poll(one, &[uncertainty]), now), [0], "{nth}");
        }
    }

    #[test]
    fn account_leaves_half_of_a_minute_to_the_others() {
        let start = Instant::now();
        let mut budget = Budget::new(10, 1_000);
        let of = |account: Id, count: usize| -> Vec<Request> {
            let requests = (0..count).map(|_| Request {
                account,
                ..poll(manager(), &[0.5])[0]
            });
            requests.collect()
        };
        let (one, other) = (Id::generate(), Id::generate());
        let mut admit = |account, count, now| budget.admit(&of(account, count), now).len();
        assert_eq!(admit(one, 20, start), 5);
        assert_eq!(admit(one, 20, start), 0);
        assert_eq!(admit(other, 2, start), 2);
        assert_eq!(admit(one, 20, start + MINUTE), 5, "a new minute");
    }

    #[test]
    fn questions_that_were_not_sent_are_given_back() {
        let now = Instant::now();
        let one = manager();
        let mut budget = Budget::new(1, 1);
        for _ in 0..5 {
            assert_eq!(budget.admit(&poll(one, &[0.5]), now), [0]);
            budget.release(Id::NIL, &one);
        }
        assert_eq!(budget.admit(&poll(one, &[0.5]), now), [0]);
        assert!(budget.admit(&poll(one, &[0.5]), now).is_empty());
    }

    #[test]
    fn new_day_brings_a_new_budget() {
        let start = Instant::now();
        let one = manager();
        let mut budget = Budget::new(1_000, 1);
        assert_eq!(budget.admit(&poll(one, &[0.5]), start), [0]);
        let evening = start + DAY - MINUTE;
        assert!(budget.admit(&poll(one, &[1.0]), evening).is_empty());
        assert_eq!(budget.admit(&poll(one, &[1.0]), start + DAY), [0]);
    }

    #[test]
    fn managers_without_candidates_are_forgotten() {
        let start = Instant::now();
        let mut budget = Budget::new(1_000, 1);
        for _ in 0..100 {
            budget.admit(&poll(manager(), &[0.5]), start);
        }
        budget.admit(&poll(manager(), &[0.5]), start + 2 * DAY);
        assert_eq!(budget.managers.len(), 1);
    }
}
