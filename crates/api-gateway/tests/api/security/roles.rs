//! Each role may do exactly what it should, by every operation of `openapi.yaml`.

use domain::key::Role;

use crate::{
    app::TestApp,
    estate::{Estate, Operation, operations, stored},
    surface::call,
};

/// Returns the lowest role that may run the operation. A new operation counts as a write unless it is a GET.
fn least(operation: &Operation) -> Role {
    let template = operation.template.as_str();
    match (operation.method.as_str(), template) {
        ("GET", template) if template.ends_with("/auditEvents") => Role::Owner,
        ("GET", _) => Role::Viewer,
        // It stores nothing.
        ("POST", template) if template.ends_with(":preview") => Role::Viewer,
        ("POST", "/v1/namespaces") | ("DELETE", "/v1/namespaces/{namespaceId}") => Role::Owner,
        _ => Role::Editor,
    }
}

fn rank(role: Role) -> u8 {
    match role {
        Role::Viewer => 0,
        Role::Editor => 1,
        Role::Owner => 2,
    }
}

#[tokio::test]
async fn each_role_has_exactly_its_permissions() {
    let app = TestApp::start().await;
    let owner = app.account("acme").await;
    let estate = Estate::make(&app, &owner).await;
    app.forget_events();
    for role in [Role::Viewer, Role::Editor, Role::Owner] {
        let client = app.key("acme", role, None).await;
        let before = stored(&app.database).await;
        for operation in operations() {
            let what = format!("{role:?}: {} {}", operation.method, operation.template);
            let path = estate.path(&operation.template, operation.depth(), None);
            if rank(role) < rank(least(&operation)) {
                // Nothing undoes it, so it must not happen.
                let answer = operation.call(&client, &path, false).await;
                assert_eq!(answer.status, 403, "{what}");
                // Roles are checked before the body.
                let invalid = call(&client, &operation.method, &path).await;
                assert_eq!(invalid.status, 403, "{what}");
            } else {
                let answer = operation.call(&client, &path, true).await;
                let taken = matches!(answer.status, 200 | 201 | 400);
                assert!(taken, "{what}: {} {}", answer.status, answer.body);
            }
        }
        assert_eq!(stored(&app.database).await, before, "{role:?}");
        assert!(app.events().is_empty(), "{role:?}");
    }
}
