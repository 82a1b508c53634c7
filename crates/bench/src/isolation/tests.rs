//! The short form: each attack for a moment. It asserts counts and bounds, and no latencies.

use std::time::{Duration, Instant};

use private_servers::postgres::Options as Server;

use super::{
    dimension::{Dimension, Size},
    hostile::Hostile,
    memory, name,
    product::Product,
    site::Site,
    victim::Victim,
};

const SPAN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);
const SMALL: Size = Size {
    slow_feeds: 200,
    scans: 5_000,
    replayed: 2_000,
    backfills: 2,
    matching: 20,
    items: 1_000,
    managers: 4,
    large: 2,
    pieces: 4,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "attacks keep a small machine busy for minutes"]
async fn hostile_account_is_limited_and_blocks_no_other() {
    attack("busy", &Dimension::BUSY).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "attacks keep a small machine busy for minutes"]
async fn account_that_needs_memory_ends_no_service_and_blocks_no_other() {
    attack("heavy", &Dimension::HEAVY).await;
}

async fn attack(home: &str, dimensions: &[Dimension]) {
    let home = std::env::temp_dir().join(format!("earshot-{home}-{}", std::process::id()));
    let product = Product::start(&home, &Server::throwaway()).await.unwrap();
    let site = Site::start().await.unwrap();
    let url = product.database_url();
    let victim = Victim::new(product.api(), site.clone(), &url)
        .await
        .unwrap();
    for dimension in dimensions.iter().copied() {
        let attack = name(dimension);
        let api = product.api();
        let mut hostile = Hostile::new(api, site.clone(), &url, &attack, SMALL)
            .await
            .unwrap();
        memory::reset(&product).unwrap();
        assert!(
            hostile.begin(dimension, PATIENCE).await.unwrap(),
            "{attack}"
        );
        let observed = victim.observe(SPAN).await.unwrap();
        for (operation, latencies) in observed.operations() {
            let counts = (latencies.failed, latencies.count() > 0);
            assert_eq!(counts, (0, true), "{attack}: {operation}");
        }
        meets_its_bound(dimension, &hostile, &site).await;
        assert_eq!(hostile.tally().failed(), 0, "{attack}");
        for peak in memory::peaks(&product).unwrap() {
            assert!(peak.is_below_limit(), "{attack}: {}", peak.text());
        }
        hostile.end().await.unwrap();
    }
    drop(victim);
    product.stop().unwrap();
}

/// Waits until the attack has met its bound, and checks that it did not pass it.
async fn meets_its_bound(dimension: Dimension, hostile: &Hostile, site: &Site) {
    let tally = hostile.tally();
    let is_refused = || tally.accepted() > 0 && tally.refused() > 0;
    let open = |kind: &str, bound: usize| {
        let most = site.most_open(kind);
        assert!(most <= bound, "{kind}: {most} open, of {bound}");
        most
    };
    let begin = Instant::now();
    while !match dimension {
        // By costly reads at a time, replays of a Connection at a time, and points of a key.
        Dimension::Filters | Dimension::Replays | Dimension::Previews => is_refused(),
        Dimension::Backfills => tally.accepted() > 0,
        // Half of the polls of a platform. Half of the quick ones begin together.
        Dimension::SlowFeeds => open("slow", 64) >= 6,
        // Half of the compilations of AUTOMATIC Managers.
        Dimension::SlowPages => open("silent", 4) == 4,
        // The requests of one Connection.
        Dimension::Endpoints => open("/hang/delivery", 8) > 0,
        Dimension::All => true,
        // What refuses these takes more requests than a busy machine makes in a moment.
        Dimension::Pages
        | Dimension::SlowReaders
        | Dimension::Deletes
        | Dimension::Churn
        | Dimension::Mutes
        | Dimension::Items
        | Dimension::Documents => tally.accepted() > 0,
        Dimension::Explain => true,
        // Deliveries of the largest posts, of one Connection.
        Dimension::LargePosts => open("late", 80) > 0,
        Dimension::BadKeys => tally.accepted() == 0 && tally.refused() > 0,
        // The test deliveries of one account.
        Dimension::Tests => open("/hang/test", 4) > 0 && tally.refused() > 0,
    } {
        assert!(begin.elapsed() < PATIENCE, "{}: {tally:?}", name(dimension));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
