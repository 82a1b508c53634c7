//! Platforms that redirect the operator's credentials elsewhere.

use std::sync::Arc;

use super::{
    Shared,
    host::{Host, ok, redirect},
    stage::{PATIENCE, Stage},
};
use crate::harness::eventually;
use crate::suite::Test;

const KEY: &str = "discourse-key-5d21";

pub(super) fn tests(shared: &Arc<Shared>) -> Vec<Test> {
    let name = "credentials_of_a_platform_stay_with_its_origin";
    vec![shared.test_alone(name, credentials)]
}

/// Another port of the same host is another origin.
async fn credentials() {
    let elsewhere = Host::start(|_| ok()).await;
    let to = elsewhere.url("/elsewhere");
    let platform = Host::start(move |_| redirect(&to)).await;
    let settings = format!(
        "[[platforms]]\nname = \"forum\"\nkind = \"discourse\"\nbase_url = \"{}\"\nclient_id = \"reader\"\n\
         token = \"{KEY}\"\npoll_interval = \"500ms\"\n",
        platform.url("")
    );
    let stage = Stage::configured(|_| settings).await;
    let a = stage.account("a").await;
    a.watch(&["forum:latest".to_owned()], "kettle", &[]).await;
    eventually("the redirect is followed", PATIENCE, async || {
        (elsewhere.count("/") > 0).then_some(())
    })
    .await;
    // The platform itself gets them.
    let asked = &platform.visits()[0];
    assert_eq!(asked.headers["api-key"], KEY);
    for visit in elsewhere.visits() {
        let headers = format!("{:?}", visit.headers);
        assert!(!headers.contains(KEY), "{} got {headers}", visit.target);
    }
}
