//! Runs pgbench with a custom script, and reads the statements that the gateway runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::RunQueryDsl;
use private_servers::postgres::Installation;

pub(crate) struct PgBench {
    program: PathBuf,
    url: String,
    script: PathBuf,
}

impl PgBench {
    pub(crate) fn new(url: &str, home: &Path, name: &str, script: &str) -> Result<Self> {
        let path = home.join(format!("{name}.sql"));
        fs::write(&path, script)?;
        Ok(Self {
            program: Installation::find(None)?.bin.join("pgbench"),
            url: url.to_owned(),
            script: path,
        })
    }

    /// Returns the transactions per second, with prepared statements, on `clients` connections.
    pub(crate) fn run(&self, clients: usize, span: Duration) -> Result<f64> {
        let output = Command::new(&self.program)
            .args(["--no-vacuum", "--protocol=prepared", "--file"])
            .arg(&self.script)
            .arg(format!("--client={clients}"))
            .arg(format!("--time={}", span.as_secs().max(1)))
            .arg(&self.url)
            .output()
            .with_context(|| format!("run {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "pgbench failed: {error}");
        let rate = text
            .lines()
            .find_map(|line| line.strip_prefix("tps = ")?.split(' ').next())
            .with_context(|| format!("pgbench reported no rate: {text}"))?;
        Ok(rate.parse()?)
    }
}

/// Returns the statement that contains `part` and was run last.
pub(crate) async fn seen(url: &str, part: &str) -> Result<String> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        query: String,
    }
    let mut conn = store::establish(url).await?;
    let row: Row = sql_query(
        "SELECT query FROM pg_stat_activity WHERE strpos(query, $1) > 0 AND pid <> pg_backend_pid() \
         ORDER BY query_start DESC LIMIT 1",
    )
    .bind::<Text, _>(part)
    .get_result(&mut conn)
    .await
    .context("no such statement was run")?;
    Ok(row.query)
}
