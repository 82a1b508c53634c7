//! Mutes and languages of Managers, and mutes of Namespaces with an enabled Manager, next to the index of plans and
//! never older than it.
//!
//! Few Managers have any. A reader holds the lock for one look-up per match. The writer updates this before the index
//! gets the version of the change, so a reader of an index never sees older mutes.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use domain::{Id, ManagerName, Timestamp};
use matching::{Candidate, Kept, Screen};
use store::plans::{NamespaceMutes, PlanRecord};

#[derive(Default)]
pub(crate) struct Screens(RwLock<Held>);

#[derive(Default)]
pub(crate) struct Held {
    managers: HashMap<ManagerName, Arc<Screen>>,
    namespaces: HashMap<Id, Arc<Screen>>,
}

impl Held {
    pub(crate) fn put(&mut self, record: &PlanRecord) {
        // If a plan cannot be read, an older one is in use.
        let at_work = record.instructions.is_some() || record.unreadable;
        let screen = at_work.then(|| Screen::new(&record.mutes, &record.languages));
        match screen.flatten() {
            Some(screen) => self.managers.insert(record.manager, Arc::new(screen)),
            None => self.managers.remove(&record.manager),
        };
    }

    pub(crate) fn put_namespace(&mut self, record: &NamespaceMutes) {
        match Screen::new(&record.mutes, &[]) {
            Some(screen) => self.namespaces.insert(record.namespace, Arc::new(screen)),
            None => self.namespaces.remove(&record.namespace),
        };
    }
}

impl Screens {
    pub(crate) fn replace(&self, held: Held) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = held;
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns why a post that the Manager's plan matched is excluded, if it is.
    pub(crate) fn why_excluded(
        &self,
        manager: &ManagerName,
        post: &Candidate<'_>,
        now: Timestamp,
    ) -> Option<Kept> {
        let (own, of_all) = {
            let held = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let of_all = held.namespaces.get(&manager.namespace).cloned();
            (held.managers.get(manager).cloned(), of_all)
        };
        let kept = of_all.and_then(|screen| post.kept_out_of(manager.namespace, &screen, now));
        kept.or_else(|| own?.keeps_out(post, now))
    }
}
