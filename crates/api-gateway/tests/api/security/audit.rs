//! Every change by every operation of `openapi.yaml` has one event in the audit log, and nothing else has one.

use std::cmp::Reverse;

use crate::{
    app::TestApp,
    estate::{Estate, operations},
};

#[tokio::test]
async fn every_change_has_one_audit_event_and_refused_requests_have_none() {
    let app = TestApp::start().await;
    let owner = app.account("acme").await;
    let estate = Estate::make(&app, &owner).await;
    let globex = app.account("globex").await;
    let mut operations = operations();
    operations.retain(|one| one.method != "GET");
    // Deletions come last, because other operations need the resources.
    operations.sort_by_key(|one| (one.method == "DELETE", Reverse(one.depth())));
    let mut recorded = 0;
    for operation in operations {
        let what = format!("{} {}", operation.method, operation.template);
        let path = estate.path(&operation.template, operation.depth(), None);
        let changes = async || {
            app.database
                .count("audit_events WHERE action <> 'READ_SECRETS'")
                .await
        };
        let before = changes().await;
        // In test mode, of another account, and of a resource that does not exist.
        operation.call(&owner, &path, true).await;
        if operation.depth() > 0 {
            operation.call(&globex, &path, false).await;
            let missing = estate.path(&operation.template, operation.depth() - 1, None);
            operation.call(&owner, &missing, false).await;
        }
        assert_eq!(changes().await, before, "{what}, refused");
        let answer = operation.call(&owner, &path, false).await;
        assert!(answer.status < 300, "{what}: {}", answer.body);
        // A preview stores nothing, and no connection test is stored because no dispatcher runs here.
        let is_change = !what.ends_with(":preview") && !what.ends_with(":test");
        assert_eq!(changes().await - before, i64::from(is_change), "{what}");
        recorded += u32::from(is_change);
    }
    assert!(recorded >= 16, "{recorded} operations");
}
