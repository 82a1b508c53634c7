//! Managers that wait for the compiler, claimed by account.

use domain::{Id, Timestamp, manager::Mode};
use store::{
    AsyncPgConnection,
    fair::Turns,
    managers::{self, Generation},
    replicas,
    work::{Claim, Leased, Room},
};
use test_support::{Fixture, instructions};
use uuid::Uuid;

use crate::support::{Start, die, number, run, start};

async fn living(conn: &mut AsyncPgConnection) -> Uuid {
    let replica = Uuid::new_v4();
    replicas::beat(conn, replica, "manager-compiler")
        .await
        .unwrap();
    replica
}

/// Lets all replicas live as long as the test, which a busy machine may take longer for than a heartbeat lasts.
async fn outlive(conn: &mut AsyncPgConnection) {
    let later = "UPDATE replicas SET heartbeat_time = now() + interval '1 hour'";
    run(conn, later).await;
}

async fn waiting(at: &mut Start, fixture: &Fixture, count: usize) {
    for _ in 0..count {
        fixture.manager(&mut at.conn, &instructions("a"), &[]).await;
    }
}

type Claimed = Leased<Generation>;

async fn claim(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    known: &[Claimed],
    places: usize,
) -> Vec<Claimed> {
    claim_of(conn, Mode::Manual, replica, known, places).await
}

async fn claim_of(
    conn: &mut AsyncPgConnection,
    mode: Mode,
    replica: Uuid,
    known: &[Claimed],
    places: usize,
) -> Vec<Claimed> {
    let mut room = Room::new(places, 0, places);
    for claim in known {
        room.take(claim.account, false);
    }
    let known: Vec<String> = known.iter().map(|claim| claim.key.clone()).collect();
    let mut claim = Claim {
        replica,
        take_over: true,
        known: &known,
        room: &mut room,
        turns: &mut Turns::default(),
    };
    managers::claim(conn, mode, &mut claim).await.unwrap().items
}

fn accounts(claims: &[Claimed], account: Id) -> usize {
    { claims.iter() }
        .filter(|claim| claim.account == account)
        .count()
}

#[tokio::test]
async fn many_managers_of_one_account_leave_capacity_for_others() {
    let mut at = start().await;
    let hostile = at.fixture.clone();
    let other = hostile.beside(&mut at.conn, "globex").await;
    waiting(&mut at, &hostile, 30).await;
    let replica = living(&mut at.conn).await;
    let first = claim(&mut at.conn, replica, &[], 8).await;
    assert_eq!((first.len(), accounts(&first, hostile.account)), (4, 4));
    assert!(claim(&mut at.conn, replica, &first, 8).await.is_empty());
    waiting(&mut at, &other, 5).await;
    let theirs = claim(&mut at.conn, replica, &first, 8).await;
    assert_eq!((theirs.len(), accounts(&theirs, other.account)), (2, 2));
    // A place that becomes free goes to the other account, which has fewer compilations in progress.
    let rest: Vec<Claimed> = first[2..].iter().chain(&theirs[1..]).cloned().collect();
    for done in [&first[0], &first[1], &theirs[0]] {
        let plan = instructions("a");
        let now = Timestamp::now();
        managers::apply(
            &mut at.conn,
            done.item.manager,
            1,
            &plan,
            &test_support::QUOTAS,
            now,
        )
        .await
        .unwrap();
    }
    let next = claim(&mut at.conn, replica, &rest, 8).await;
    assert_eq!(next[0].account, other.account);
    let automatic = claim_of(&mut at.conn, Mode::Automatic, replica, &[], 8).await;
    assert!(automatic.is_empty(), "none waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_never_claim_the_same_manager() {
    let mut at = start().await;
    let fixture = at.fixture.clone();
    waiting(&mut at, &fixture, 40).await;
    let mut compilers = Vec::new();
    for _ in 0..4 {
        compilers.push(living(&mut at.conn).await);
    }
    outlive(&mut at.conn).await;
    let tasks: Vec<_> = { compilers.into_iter() }
        .map(|replica| {
            let pool = at.database.pool();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                let mut claimed: Vec<Claimed> = Vec::new();
                for _ in 0..30 {
                    // As if everything that was claimed before belonged to another account.
                    let elsewhere = claimed.iter().map(|claim| Claimed {
                        account: Id::NIL,
                        ..claim.clone()
                    });
                    let known: Vec<Claimed> = elsewhere.collect();
                    let places = known.len() + 14;
                    claimed.extend(claim(&mut conn, replica, &known, places).await);
                }
                claimed
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(
            task.await
                .unwrap()
                .into_iter()
                .map(|claim| claim.item.manager),
        );
    }
    assert_eq!(all.len(), 40);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 40);
    let taken = "SELECT count(*) AS number FROM managers WHERE compiled_by IS NOT NULL";
    assert_eq!(number(&mut at.conn, taken).await, 40);
}

#[tokio::test]
async fn a_claim_ends_with_its_replica_or_its_generation() {
    let mut at = start().await;
    let fixture = at.fixture.clone();
    waiting(&mut at, &fixture, 1).await;
    let conn = &mut at.conn;
    let [one, two] = [living(conn).await, living(conn).await];
    outlive(conn).await;
    let first = claim(conn, one, &[], 8).await;
    assert_eq!(first.len(), 1);
    assert!(
        claim(conn, two, &[], 8).await.is_empty(),
        "its holder lives"
    );
    assert!(
        claim(conn, one, &first, 8).await.is_empty(),
        "it is in hand"
    );
    assert_eq!(claim(conn, one, &[], 8).await, first, "it was forgotten");

    // A new generation does not wait for the result of the old one.
    run(conn, "UPDATE managers SET generation = 2").await;
    let second = claim(conn, two, &[], 8).await;
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].item.generation, 2);
    assert!(claim(conn, one, &first, 8).await.is_empty());
    die(conn, two).await;
    let taken_over = claim(conn, one, &first, 8).await;
    assert_eq!(taken_over[0].key, second[0].key);
    assert_eq!((second[0].crashes, taken_over[0].crashes), (0, 1));
}
