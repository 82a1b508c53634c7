//! Pages that give no instructions: APPLY_FAILED, with the reason for the customer.

use super::support::{Customer, PATIENCE, name};
use crate::{
    customer,
    harness::{Stack, receiver::Receiver, shape, site::HUGE_BYTES},
};

pub(crate) async fn run(stack: &Stack) {
    let customer = Customer::new(stack, "Unreadable", Receiver::start().await).await;
    let closed = format!("http://{}/", crate::harness::free_address());
    let site = |path| stack.site.url(path);
    let cases = [
        (site("/huge"), "no_usable_content", "larger than"),
        (site("/metadata"), "forbidden_address", "169.254.169.254"),
        (
            closed.clone(),
            "no_reachable_url",
            "the connection was refused",
        ),
        (site("/nowhere"), "no_reachable_url", "404"),
        (site("/empty"), "no_usable_content", ""),
    ];
    let cases = cases.map(|(url, code, cause)| case(&customer, url, code, cause));
    futures::future::join_all(cases).await;

    let sent = stack.site.huge_sent_bytes();
    println!("{sent} bytes of the huge page were read");
    assert!(
        sent < HUGE_BYTES / 4,
        "{sent} bytes of the huge page were read"
    );

    // One good page among bad ones is sufficient.
    let urls = [closed, site("/huge"), site("/moved")];
    let request = customer::manager("Mixed", "FORUM", &urls, &customer.connection);
    let created = stack
        .api
        .create_manager(&customer.namespace, &request)
        .await;
    stack.api.applied(&created, PATIENCE).await;
}

async fn case(customer: &Customer<'_>, url: String, code: &str, cause: &str) {
    let request = customer::manager(
        "Bad page",
        "FORUM",
        std::slice::from_ref(&url),
        &customer.connection,
    );
    let api = &customer.stack.api;
    let created = api.create_manager(&customer.namespace, &request).await;
    let manager = api.compiled(&created, PATIENCE).await;
    assert_eq!(manager["state"], "APPLY_FAILED", "{manager:#}");
    assert_eq!(shape::keys(&manager["applyError"]), ["code", "message"]);
    assert_eq!(manager["applyError"]["code"], code, "{manager:#}");
    let message = manager["applyError"]["message"].as_str().unwrap();
    assert!(message.contains(cause), "{message}");
    assert!(manager.get("instructions").is_none() && manager.get("applyTime").is_none());

    let scans = api.scans(&manager, 5).await;
    assert!(scans.is_empty(), "{}", name(&manager));
}
