//! Platforms that the operator opened to some accounts only.

use domain::{Instructions, manager::SourceType};
use test_support::instructions;

use crate::support::World;

#[tokio::test]
async fn account_without_access_to_a_platform_watches_none_of_its_feeds() {
    let mut world = World::new().await;
    world.config.platforms[0].access.accounts = vec!["globex".to_owned()];
    let globex = world.beside("globex").await;
    // Without feeds, a Manager watches the newest posts of its source's platforms.
    let everything = || Instructions {
        feeds: Vec::new(),
        ..instructions("kettle")
    };
    let origin = |instructions| domain::manager::Origin::Instructions(instructions);
    let own = world.manual(SourceType::Forum, everything()).await;
    let theirs = world
        .waiting_of(&globex, SourceType::Forum, origin(everything()))
        .await;
    let named = world
        .manual(SourceType::Forum, instructions("kettle"))
        .await;
    let allowed = world
        .waiting_of(&globex, SourceType::Forum, origin(instructions("kettle")))
        .await;
    let replica = world.compiler();
    for (manager, feeds) in [
        (own, &["lemmy:newest"][..]),
        (theirs, &["hackernews:newest", "lemmy:newest"]),
        (allowed, &["hackernews:newest"]),
    ] {
        let applied = world.until(manager, "APPLIED").await;
        let watched = applied.instructions.unwrap().feeds;
        let mut watched: Vec<&str> = watched.iter().map(|feed| feed.as_str()).collect();
        watched.sort_unstable();
        assert_eq!(watched, feeds);
    }
    let failed = world.until(named, "APPLY_FAILED").await;
    let error = failed.apply_error.unwrap();
    assert_eq!(error.code.as_str(), "invalid_instructions");
    assert!(
        error.message.contains("`hackernews:newest`"),
        "{}",
        error.message
    );
    replica.stop().await;
}
