//! Wakes the queues for Managers whose submission's event this process received.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use domain::{ManagerName, manager::Mode};
use store::managers::Generation;
use tokio::sync::Notify;
use tracing::Span;

/// Maximum number of traces of waiting Managers.
const MAX_TRACES: usize = 1_000;

/// State that events share with the queues.
#[derive(Default)]
pub(crate) struct Arrivals {
    automatic: Notify,
    manual: Notify,
    /// Spans of the events, so that a compilation is part of the trace of its submission.
    traces: Mutex<HashMap<ManagerName, Span>>,
}

impl Arrivals {
    /// Wakes the queues for a Manager, in the span of its event.
    pub(crate) fn announce(&self, name: ManagerName) {
        {
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            if traces.len() >= MAX_TRACES {
                traces.clear();
            }
            traces.insert(name, Span::current());
        }
        self.automatic.notify_one();
        self.manual.notify_one();
    }

    /// Returns what wakes the queue of a mode.
    pub(crate) fn of(&self, mode: Mode) -> &Notify {
        match mode {
            Mode::Automatic => &self.automatic,
            Mode::Manual => &self.manual,
        }
    }

    /// Returns the span of a compilation, as a child of the event's span if this process received it.
    pub(crate) fn span(&self, claimed: &Generation) -> Span {
        let event = {
            let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
            traces.remove(&claimed.manager)
        };
        let parent = event.as_ref().and_then(Span::id);
        tracing::info_span!(parent: parent, "compile manager", manager.name = %claimed.manager, generation = claimed.generation)
    }
}
