//! Alerts about compilations fire by their causes.

use test_support::{Alert, Answer, TestServer, eventually};

use crate::support::World;

#[tokio::test]
async fn alert_fires_when_no_submission_is_claimed() {
    let world = World::new().await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'nothing at all'; END $$",
        "CREATE TRIGGER refuse BEFORE UPDATE ON managers FOR EACH ROW \
         WHEN (NEW.compiled_by IS NOT NULL) EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    let compiler = world.compiler();
    let alert = Alert::watch("EarshotCompileQueueStuck", &compiler).await;
    world.automatic(&["http://127.0.0.1:1/".to_owned()]).await;
    world
        .database
        .run("UPDATE managers SET submit_time = now() - interval '1 hour'")
        .await;
    alert.fires().await;
    compiler.stop().await;
}

#[tokio::test]
async fn alert_fires_when_every_page_fails() {
    let world = World::new().await;
    let broken = TestServer::start(|_, _| Answer::Status(404)).await;
    let compiler = world.compiler();
    eventually("it works", async || compiler.health.report().is_ready()).await;
    let alert = Alert::watch("EarshotCompileFailing", &compiler).await;
    let name = world.automatic(&[broken.url("/")]).await;
    world.publish_submitted(name, 1).await;
    world.until(name, "APPLY_FAILED").await;
    alert.repeats().fires().await;
    compiler.stop().await;
}
