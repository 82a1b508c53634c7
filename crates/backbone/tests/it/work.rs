//! The engine of background work: what ends processes, fails or panics stops nothing else.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use backbone::work::{self, Settings, Work};
use domain::Id;
use store::{
    AsyncPgConnection,
    work::{Claim, Claimed, Leased, Setback, table},
};
use test_support::{Alert, Replica, TestDatabase, eventually};

use crate::support::{self, backbone};

const KIND: &str = "test";

/// Letters that are always due, and how often each was begun.
#[derive(Default)]
struct Letters {
    begun: Mutex<HashMap<String, u32>>,
    /// How many were completed.
    done: AtomicU32,
    /// True once the letter "panics later" panics.
    is_late: AtomicBool,
}

impl Letters {
    fn begun(&self, key: &str) -> u32 {
        self.begun.lock().unwrap().get(key).copied().unwrap_or(0)
    }
}

/// The work of one replica.
struct Writer {
    kind: &'static str,
    letters: Arc<Letters>,
    keys: &'static [&'static str],
}

impl Work for Writer {
    type Item = ();

    fn settings(&self) -> Settings {
        Settings::new(self.kind, Duration::from_millis(50), 8)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<()>, store::Error> {
        let due = self.keys.iter().map(|key| table::Due {
            key: (*key).to_owned(),
            accounts: vec![Id::NIL],
            item: (),
        });
        Ok(table::lease(conn, self.kind, due.collect(), claim).await?)
    }

    async fn run(&self, leased: &Leased<()>) -> Result<(), store::Error> {
        let key = leased.key.clone();
        *self.letters.begun.lock().unwrap().entry(key).or_default() += 1;
        match leased.key.as_str() {
            "hangs" | "hangs too" => std::future::pending().await,
            "panics" => panic!("a planned panic"),
            "panics later" if self.letters.is_late.load(Ordering::SeqCst) => {
                panic!("a planned panic")
            }
            "fails" => Err(store::Error::QuotaRace(Vec::new())),
            _ => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                self.letters.done.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
        }
    }
}

fn start(
    database: &TestDatabase,
    letters: &Arc<Letters>,
    keys: &'static [&'static str],
) -> Replica {
    let hosted = backbone(database);
    let (own, letters) = (hosted.clone(), Arc::clone(letters));
    Replica::start("scanner", hosted, move |context| async move {
        if own.ready(&context.shutdown).await {
            let writer = Arc::new(Writer {
                kind: KIND,
                letters,
                keys,
            });
            backbone::work::run(writer, &own, &context.shutdown).await;
        }
        Ok(())
    })
}

#[tokio::test]
async fn a_process_has_one_suspect_of_any_kind_in_hand() {
    let database = TestDatabase::create().await;
    let letters = Arc::new(Letters::default());
    let kinds: [(_, &[_]); 2] = [("test", &["hangs"]), ("other", &["hangs too", "a"])];
    let both = || letters.begun("hangs") + letters.begun("hangs too");
    for begun in [2, 4, 5] {
        let hosted = backbone(&database);
        let (own, given) = (hosted.clone(), Arc::clone(&letters));
        let replica = Replica::start("scanner", hosted, move |context| async move {
            if own.ready(&context.shutdown).await {
                let run = |(kind, keys)| {
                    let letters = Arc::clone(&given);
                    let writer = Arc::new(Writer {
                        kind,
                        letters,
                        keys,
                    });
                    backbone::work::run(writer, &own, &context.shutdown)
                };
                let [first, second] = kinds.map(run);
                tokio::join!(first, second);
            }
            Ok(())
        });
        eventually("they are begun", async || both() == begun).await;
        let others = letters.begun("a") + 10;
        eventually("others go on", async || letters.begun("a") > others).await;
        assert_eq!(both(), begun);
        replica.kill();
    }
}

#[tokio::test]
async fn item_that_ends_three_processes_is_set_aside_and_the_others_go_on() {
    let database = TestDatabase::create().await;
    let letters = Arc::new(Letters::default());
    let keys = &["hangs", "a", "b"];
    for times in 1..=3 {
        let replica = start(&database, &letters, keys);
        eventually("it is begun", async || letters.begun("hangs") == times).await;
        let others = letters.begun("a").min(letters.begun("b"));
        eventually("the others go on", async || {
            letters.begun("a").min(letters.begun("b")) > others
        })
        .await;
        replica.kill();
    }
    let replica = start(&database, &letters, keys);
    let set_aside = "leases WHERE key = 'hangs' AND leased_by IS NULL AND next_time > now() \
                     AND error = 'the service stopped 3 times while it worked on this'";
    eventually("it is set aside", async || {
        database.count(set_aside).await == 1
    })
    .await;
    let others = letters.begun("a").min(letters.begun("b"));
    eventually("the others go on", async || {
        letters.begun("a").min(letters.begun("b")) > others
    })
    .await;
    assert_eq!(letters.begun("hangs"), 3);
    let rested = "UPDATE leases SET next_time = now() WHERE key = 'hangs'";
    database.run(rested).await;
    eventually("it is tried again", async || letters.begun("hangs") == 4).await;
    replica.kill();
}

#[tokio::test]
async fn purge_that_ends_three_processes_is_set_aside_and_the_others_go_on() {
    let database = TestDatabase::create().await;
    for statement in [
        "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$",
        "CREATE TRIGGER hang BEFORE UPDATE ON purges FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION hang()",
        "INSERT INTO purges (id, namespace_id) OVERRIDING SYSTEM VALUE VALUES (1, gen_random_uuid())",
    ] {
        database.run(statement).await;
    }
    let lease = "leases WHERE kind = 'purge' AND key = '1'";
    let hangs = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    for _ in 0..3 {
        let replica = support::start("scanner", backbone(&database));
        let own = replica.backbone.replica;
        let leased = format!("{lease} AND leased_by = '{own}'");
        eventually("it is worked on", async || {
            database.count(&leased).await == 1 && database.count(hangs).await == 1
        })
        .await;
        replica.kill();
        // The server notices the death of a client only when it answers.
        database.disconnect_all().await;
    }
    let replica = support::start("scanner", backbone(&database));
    let set_aside =
        format!("{lease} AND leased_by IS NULL AND next_time > now() AND crash_count = 4");
    eventually("it is set aside", async || {
        database.count(&set_aside).await == 1
    })
    .await;
    database
        .run("INSERT INTO purges (id, namespace_id) OVERRIDING SYSTEM VALUE VALUES (2, gen_random_uuid())")
        .await;
    let looked_at = "purges WHERE id = 2 AND next_time > now()";
    eventually("the other goes on", async || {
        database.count(looked_at).await == 1
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn purge_that_the_database_refuses_is_tried_again_and_delays_no_other() {
    let database = TestDatabase::create().await;
    for statement in [
        "CREATE SEQUENCE tries",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         PERFORM nextval('tries'); RAISE 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON purges FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION refuse()",
        "INSERT INTO purges (id, namespace_id) OVERRIDING SYSTEM VALUE VALUES (1, gen_random_uuid())",
    ] {
        database.run(statement).await;
    }
    let replica = support::start("scanner", backbone(&database));
    eventually("it is tried again", async || {
        database.count("tries WHERE last_value >= 2").await == 1
    })
    .await;
    database
        .run("INSERT INTO purges (id, namespace_id) OVERRIDING SYSTEM VALUE VALUES (2, gen_random_uuid())")
        .await;
    let looked_at = |id| format!("purges WHERE id = {id} AND next_time > now()");
    eventually("the other goes on", async || {
        database.count(&looked_at(2)).await == 1
    })
    .await;
    assert_eq!(database.count(&looked_at(1)).await, 0);
    database.run("DROP TRIGGER refuse ON purges").await;
    eventually("it goes on", async || {
        database.count(&looked_at(1)).await == 1
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn items_that_fail_or_panic_delay_no_others() {
    let database = TestDatabase::create().await;
    let letters = Arc::new(Letters::default());
    let replica = start(&database, &letters, &["fails", "panics", "a"]);
    let set_aside = "leases WHERE key = 'panics' AND crash_count = 4 AND error IS NOT NULL";
    eventually("it panicked three times", async || {
        database.count(set_aside).await == 1
    })
    .await;
    eventually("it was tried again", async || letters.begun("fails") >= 2).await;
    assert_eq!(letters.begun("panics"), 3);
    assert!(letters.begun("a") > letters.begun("fails"));
    replica.stop().await;
}

/// Work that keeps its leases itself. Items panic this often before they are done.
struct Fragile {
    panics: Mutex<HashMap<&'static str, u32>>,
    ended: Mutex<Vec<String>>,
}

impl Work for Fragile {
    type Item = &'static str;

    fn settings(&self) -> Settings {
        Settings::new("fragile", Duration::from_millis(50), 8)
    }

    async fn claim(
        &self,
        _conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<&'static str>, store::Error> {
        let ended = self.ended.lock().unwrap();
        let panics = self.panics.lock().unwrap();
        let is_due = |key: &&str| {
            !claim.known.iter().any(|known| known == key)
                && !ended.iter().any(|ended| ended.starts_with(*key))
        };
        let due = panics.keys().copied().filter(is_due);
        Ok(Claimed {
            items: due.map(|key| Leased::unleased(key, key)).collect(),
            ..Claimed::default()
        })
    }

    async fn run(&self, leased: &Leased<&'static str>) -> Result<(), store::Error> {
        let left = {
            let mut panics = self.panics.lock().unwrap();
            let panics = panics.get_mut(leased.item).unwrap();
            let left = *panics;
            *panics = left.saturating_sub(1);
            left
        };
        assert_eq!(left, 0, "a planned panic");
        let done = format!("{} is done", leased.item);
        self.ended.lock().unwrap().push(done);
        Ok(())
    }

    async fn set_aside(
        &self,
        _conn: &mut AsyncPgConnection,
        _backbone: &backbone::Backbone,
        leased: &Leased<&'static str>,
        _setback: &Setback,
    ) -> Result<(), store::Error> {
        let aside = format!("{} is set aside", leased.item);
        self.ended.lock().unwrap().push(aside);
        Ok(())
    }

    fn uses_table(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn item_that_keeps_its_lease_itself_may_panic_twice() {
    let database = TestDatabase::create().await;
    let hosted = backbone(&database);
    let work = Arc::new(Fragile {
        panics: Mutex::new([("twice", 2), ("thrice", 3)].into()),
        ended: Mutex::default(),
    });
    let (own, fragile) = (hosted.clone(), Arc::clone(&work));
    let replica = Replica::start("scanner", hosted, move |context| async move {
        if own.ready(&context.shutdown).await {
            work::run(fragile, &own, &context.shutdown).await;
        }
        Ok(())
    });
    let ended = || {
        let mut ended = work.ended.lock().unwrap().clone();
        ended.sort_unstable();
        ended
    };
    eventually("both end", async || ended().len() == 2).await;
    assert_eq!(ended(), ["thrice is set aside", "twice is done"]);
    replica.stop().await;
}

#[tokio::test]
async fn alert_fires_for_an_item_that_panics_three_times() {
    let database = TestDatabase::create().await;
    let letters = Arc::new(Letters::default());
    let replica = start(&database, &letters, &["panics later"]);
    eventually("it works", async || letters.begun("panics later") > 0).await;
    let alert = Alert::watch("EarshotWorkSetAside", &replica).await;
    letters.is_late.store(true, Ordering::SeqCst);
    alert.fires().await;
    replica.stop().await;
}

#[tokio::test]
async fn shutdown_completes_what_is_in_hand() {
    let database = TestDatabase::create().await;
    let letters = Arc::new(Letters::default());
    let replica = start(&database, &letters, &["a", "b"]);
    eventually("they are begun", async || letters.begun("b") > 0).await;
    replica.stop().await;
    let done = letters.done.load(Ordering::SeqCst);
    assert_eq!(letters.begun("a") + letters.begun("b"), done);
}

/// Work whose looks take long and always find the same item. Notes when they begin and end.
#[derive(Default)]
struct SlowLooks(Mutex<Vec<(Instant, Instant)>>);

impl Work for SlowLooks {
    type Item = ();

    fn settings(&self) -> Settings {
        Settings::new("slow", Duration::from_millis(10), 8)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<()>, store::Error> {
        let begin = Instant::now();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let due = table::Due {
            key: "a".to_owned(),
            accounts: vec![Id::NIL],
            item: (),
        };
        let claimed = table::lease(conn, "slow", vec![due], claim).await?;
        self.0.lock().unwrap().push((begin, Instant::now()));
        Ok(claimed)
    }

    async fn run(&self, _leased: &Leased<()>) -> Result<(), store::Error> {
        Ok(())
    }
}

#[tokio::test]
async fn looks_that_take_long_take_a_third_of_the_time_at_most() {
    let database = TestDatabase::create().await;
    let hosted = backbone(&database);
    let looks = Arc::new(SlowLooks::default());
    let (own, work) = (hosted.clone(), Arc::clone(&looks));
    let replica = Replica::start("scanner", hosted, move |context| async move {
        if own.ready(&context.shutdown).await {
            work::run(work, &own, &context.shutdown).await;
        }
        Ok(())
    });
    eventually("it looks some times", async || {
        looks.0.lock().unwrap().len() >= 4
    })
    .await;
    replica.stop().await;
    for pair in looks.0.lock().unwrap().windows(2) {
        let [(begin, end), (next, _)] = pair else {
            unreachable!()
        };
        assert!(*next - *end >= (*end - *begin) * 2, "{pair:?}");
    }
}
