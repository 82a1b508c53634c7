//! Reference implementations for comparison, in the same run: each plan in turn, Aho-Corasick, and PostgreSQL's
//! `tsquery`.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Instant};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use anyhow::Result;
use diesel::{
    sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::ManagerName;
use matching::{Plan, PostText, evaluate};
use private_servers::postgres::{Options as Server, Postgres};

use super::{float, load, processor_seconds, watches};

/// Maximum time per peer, in seconds.
const SECONDS: f64 = 3.0;

/// Evaluates every plan.
pub(super) struct BruteForce<'a>(&'a [(ManagerName, Arc<Plan>)]);

impl<'a> BruteForce<'a> {
    pub(super) fn new(plans: &'a [(ManagerName, Arc<Plan>)]) -> Self {
        Self(plans)
    }

    pub(super) fn compare(&self, posts: &[load::Post], each: f64) -> String {
        let mut found = 0_u64;
        let rate = rate(posts, |post| {
            let text = PostText::new(Some(&post.title), Some(&post.text));
            let plans = self.0.iter().filter(|(_, plan)| watches(plan, &post.feed));
            found += plans
                .filter(|(_, plan)| evaluate(plan, &text, None).value)
                .count() as u64;
        });
        told("asking every plan", rate, each)
    }
}

/// Finds all terms of all plans with one automaton; decides nothing.
pub(super) fn automaton(
    load: &load::Load,
    managers: u64,
    posts: &[load::Post],
    each: f64,
) -> Result<String> {
    let mut terms = BTreeMap::new();
    for number in 0..managers {
        for term in load.instructions(number).include {
            terms.insert(term.text, ());
        }
    }
    let start = Instant::now();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(terms.keys())?;
    let build = start.elapsed().as_secs_f64();
    let mut found = 0;
    let rate = rate(posts, |post| {
        for text in [&post.title, &post.text] {
            found += automaton.find_overlapping_iter(text.as_str()).count();
        }
    });
    let told = told("aho-corasick, terms alone", rate, each);
    Ok(format!("{told}, build {build:.1} s"))
}

/// Stores a row for each plan, and queries it with the post as a `tsvector`: any of the terms, without weights.
pub(super) fn postgresql(
    load: &load::Load,
    managers: u64,
    posts: &[load::Post],
    each: f64,
) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let home = PathBuf::from("target/bench/match-postgresql");
    let server = Postgres::start(&home, &Server::throwaway())?;
    let rate = runtime.block_on(async {
        let url = server.url();
        let mut conn = AsyncPgConnection::establish(&url).await?;
        conn.batch_execute(
            "DROP TABLE IF EXISTS plans; CREATE TABLE plans (query tsquery NOT NULL)",
        )
        .await?;
        for number in 0..managers {
            let terms = load.instructions(number).include.into_iter();
            let terms: Vec<String> = terms.map(|term| term.text.replace(' ', " <-> ")).collect();
            sql_query("INSERT INTO plans VALUES (to_tsquery('simple', $1))")
                .bind::<Text, _>(terms.join(" | "))
                .execute(&mut conn)
                .await?;
        }
        let start = Instant::now();
        let mut done = 0;
        for post in posts {
            let _: Vec<Count> = sql_query(
                "SELECT count(*) FROM plans, to_tsvector('simple', $1) post WHERE post @@ query",
            )
            .bind::<Text, _>(format!("{}\n\n{}", post.title, post.text))
            .load(&mut conn)
            .await?;
            done += 1;
            if start.elapsed().as_secs_f64() > SECONDS {
                break;
            }
        }
        Ok::<_, anyhow::Error>(float(done) / start.elapsed().as_secs_f64())
    })?;
    Ok(told("PostgreSQL tsquery", rate, each))
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    #[expect(dead_code, reason = "asked for so that PostgreSQL has to find it")]
    count: i64,
}

/// Returns the posts per second, measured for a few seconds at most.
fn rate(posts: &[load::Post], mut decide: impl FnMut(&load::Post)) -> f64 {
    let start = processor_seconds().unwrap_or_default();
    let mut done = 0;
    let mut used = 0.0;
    for post in posts {
        decide(post);
        done += 1;
        if done % 8 == 0 || posts.len() < 100 {
            used = processor_seconds().unwrap_or_default() - start;
            if used > SECONDS {
                break;
            }
        }
    }
    float(done) / used.max(1e-9)
}

fn told(what: &str, rate: f64, each: f64) -> String {
    let times = 1.0 / each / rate;
    format!("{what} {rate:.0}/s (index {times:.0}x)")
}
