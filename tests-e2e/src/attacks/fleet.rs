//! The four services, a victim that watches a feed, and attackers.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use futures::FutureExt;

use super::{
    host::{Entry, Host, Reply, Visit, atom},
    stage::{Account, PATIENCE, feed, with_blogs},
};
use crate::harness::{Kind, LOSS, Part, Stack, chart::memory_limit, receiver::Receiver};

const WORD: &str = "kettle";
/// Posts in the victim's feed.
const NEWEST: usize = 20;

pub(super) struct Fleet {
    pub(super) stack: Stack,
    attackers: AtomicUsize,
    victim: Victim,
}

impl Fleet {
    pub(super) async fn start() -> Self {
        let stack = Stack::configured(Kind::Distributed, with_blogs).await;
        let victim = Victim::start(&stack).await;
        Self {
            stack,
            attackers: AtomicUsize::new(0),
            victim,
        }
    }

    /// Attacks with a new account, and checks that all services are still there, within their memory limits, and serve
    /// the victim.
    pub(super) async fn survives(&self, attack: impl AsyncFnOnce(&Self, &Account)) {
        let number = self.attackers.fetch_add(1, Ordering::Relaxed);
        let attacker = account(&self.stack, &format!("attacker-{number}")).await;
        let attacked = async {
            attack(self, &attacker).await;
            self.victim_gets_a_post().await;
            self.check_memory();
        };
        if let Err(panic) = AssertUnwindSafe(attacked).catch_unwind().await {
            self.stack.print_logs();
            // A service that ended makes the victim, or the attack, wait in vain.
            self.check_memory();
            std::panic::resume_unwind(panic);
        }
    }

    /// Publishes a post in the victim's feed, and waits until its webhook arrives.
    pub(super) async fn victim_gets_a_post(&self) {
        let published = 1 + self.victim.published.fetch_add(1, Ordering::SeqCst);
        self.victim.receiver.wait_for(published, PATIENCE).await;
    }

    /// Compares the highest memory since the start, not the memory now. The chart's limit counts resident memory, and no
    /// limit of a process does.
    fn check_memory(&self) {
        let peaks = Part::SERVICES.map(|part| (part, self.stack.peak_memory(part)));
        println!("most memory in MiB: {peaks:?}");
        for (part, peak) in peaks {
            let limit = memory_limit(part);
            let peak = peak.unwrap_or_else(|| panic!("{LOSS}{part:?} has ended"));
            assert!(peak < limit, "{LOSS}{part:?} needed {peak} MiB of {limit}");
        }
    }
}

/// An account whose posts must arrive.
struct Victim {
    published: Arc<AtomicUsize>,
    receiver: Receiver,
    _host: Host,
}

impl Victim {
    async fn start(stack: &Stack) -> Self {
        let published = Arc::<AtomicUsize>::default();
        let count = Arc::clone(&published);
        let host = Host::start(move |_: &Visit| {
            let posts = count.load(Ordering::SeqCst);
            let entries: Vec<Entry> = (posts.saturating_sub(NEWEST)..posts)
                .map(|number| Entry {
                    id: format!("{number}"),
                    title: format!("{WORD} {number}"),
                    text: format!("About a {WORD}."),
                    link: format!("http://victim.example/{number}"),
                })
                .collect();
            Reply::Answer(atom("victim", &entries))
        })
        .await;
        let receiver = Receiver::start().await;
        let account = account(stack, "victim").await;
        let url = receiver.url();
        let connection = account.create_connection(&account.namespace, &url, serde_json::json!({}));
        let notices = [connection.await];
        account
            .watch(&[feed(&host.url("/feed"))], WORD, &notices)
            .await;
        Self {
            published,
            receiver,
            _host: host,
        }
    }
}

async fn account(stack: &Stack, name: &str) -> Account {
    let key = stack.key(name, "OWNER");
    Account::create(&stack.api_url, key, name.to_owned()).await
}
