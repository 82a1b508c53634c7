//! Starts that cannot succeed: each error tells the operator what is wrong and how to fix it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use http::Method;
use tempfile::TempDir;

use crate::{
    Kind,
    harness::{
        api, busy_address, config, dev_command, eventually, free_address,
        process::Process,
        programs::{self, Ended},
    },
};

const SERVICES: [&str; 4] = [
    "api-gateway",
    "manager-compiler",
    "scanner",
    "webhook-dispatcher",
];
/// Words of the error: the missing server, and the reason.
const NO_DATABASE: [&str; 2] = ["database", "refused"];
const WITHIN: Duration = Duration::from_secs(120);

/// A directory with a configuration.
struct Place {
    directory: TempDir,
    config: PathBuf,
}

impl Place {
    fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("earshot.toml");
        std::fs::write(&path, config).unwrap();
        Self {
            directory,
            config: path,
        }
    }

    fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Returns each program of this form of the service, with this configuration.
    fn commands(&self, kind: Kind) -> Vec<Command> {
        match kind {
            Kind::Dev => vec![dev_command(&self.config, &self.data_dir())],
            Kind::Distributed => SERVICES.map(|name| service(name, &self.config)).into(),
        }
    }
}

fn service(name: &str, config: &Path) -> Command {
    let mut command = programs::command(name);
    command.arg("--config").arg(config);
    command.env("EARSHOT_OPS__LISTEN", "127.0.0.1:0");
    command.env("EARSHOT_GATEWAY__LISTEN", "127.0.0.1:0");
    command
}

/// Returns a configuration of the services whose database and broker do not exist.
fn nobody_there() -> String {
    let database = format!("postgres://earshot:hush@{}/earshot", free_address());
    let broker = format!("amqp://guest:guest@{}/%2f", free_address());
    config::distributed("http://127.0.0.1:9", &database, &broker)
}

#[track_caller]
fn assert_refused(command: &mut Command, names: &[&str]) -> Ended {
    let ended = programs::finish(command, WITHIN);
    let said = ended.said();
    assert_eq!(ended.code, Some(1), "{command:?}: {said}");
    for name in names {
        assert!(
            said.contains(name),
            "{command:?} does not name {name}: {said}"
        );
    }
    assert!(
        !said.contains("panicked") && !said.contains("hush"),
        "{said}"
    );
    ended
}

pub(crate) fn wrong_settings(kind: Kind) {
    let good = nobody_there();
    let wrong = [
        ("[scanner]\npol_interval = \"5s\"", "scanner.pol_interval"),
        (
            "[dispatcher]\ntimeout = \"10 parsecs\"",
            "dispatcher.timeout",
        ),
        ("[elsewhere]\nlisten = true", "elsewhere"),
        (
            "[[platforms]]\nname = \"x\"\nkind = \"usenet\"",
            "platforms",
        ),
        ("[database]\nurl = \"mysql://localhost/x\"", "database.url"),
    ];
    for (setting, key) in wrong {
        let place = Place::new(setting);
        for mut command in place.commands(kind) {
            assert_refused(&mut command, &[key, "earshot.toml"]);
        }
        assert!(
            !place.data_dir().exists(),
            "an invalid configuration changes nothing"
        );
    }
    let place = Place::new(&good);
    for mut command in place.commands(kind) {
        command.env("EARSHOT_SCANNER__BACKFILL", "soon");
        assert_refused(
            &mut command,
            &["scanner.backfill", "EARSHOT_SCANNER__BACKFILL"],
        );
    }
    std::fs::remove_file(&place.config).unwrap();
    for mut command in place.commands(kind) {
        assert_refused(&mut command, &["earshot.toml"]);
    }
}

pub(crate) async fn missing_database(kind: Kind) {
    let place = Place::new(&nobody_there());
    let mut migrate = programs::command("earshot");
    migrate.arg("migrate").arg("--config").arg(&place.config);
    assert_refused(&mut migrate, &NO_DATABASE);
    if kind == Kind::Dev {
        let platforms = config::common("http://127.0.0.1:9");
        let database = format!("postgres://earshot:hush@{}/earshot", free_address());
        let place = Place::new(&format!("{platforms}\n[database]\nurl = \"{database}\""));
        assert_refused(&mut place.commands(kind).remove(0), &NO_DATABASE);
        return;
    }

    // Without an address the services do not start; with one they wait, log it, and are not ready.
    let empty = Place::new("");
    for mut command in empty.commands(kind) {
        assert_refused(&mut command, &["database.url", "bus.url"]);
    }
    for name in SERVICES {
        let ops = free_address();
        let mut command = service(name, &place.config);
        command.env("EARSHOT_OPS__LISTEN", &ops);
        let process = Process::spawn(name, &mut command, place.directory.path());
        assert_waits(name, process, &ops).await;
    }
}

/// Asserts that the process is alive, is not ready, and gives the reason.
async fn assert_waits(name: &str, mut process: Process, ops: &str) {
    let client = api::client();
    let url = |path: &str| format!("http://{ops}{path}");
    eventually(&format!("{name} is not ready"), WITHIN, async || {
        assert!(process.ended().is_none(), "{}", process.output());
        let answer = api::try_send(&client, Method::GET, &url("/readyz"), &[], None)
            .await
            .ok()?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status == 503 && NO_DATABASE.iter().all(|word| text.contains(word))).then_some(())
    })
    .await;
    let alive = api::send(&client, Method::GET, &url("/healthz"), &[], None).await;
    assert_eq!(alive.status, 200);
    eventually(
        &format!("{name} says what it waits for"),
        WITHIN,
        async || {
            let output = process.output();
            assert!(!output.contains("hush"), "{output}");
            NO_DATABASE
                .iter()
                .all(|word| output.contains(word))
                .then_some(())
        },
    )
    .await;
    assert!(process.terminate(WITHIN).success(), "{}", process.output());
}

pub(crate) fn busy_port(kind: Kind) {
    let (_listener, address) = busy_address();
    if kind == Kind::Dev {
        let place = Place::new(&config::common("http://127.0.0.1:9"));
        for option in ["--listen", "--ops-listen"] {
            let mut command = programs::command("earshot");
            let other = if option == "--listen" {
                "--ops-listen"
            } else {
                "--listen"
            };
            command.args(["dev", option, &address, other, "127.0.0.1:0"]);
            command.arg("--data-dir").arg(place.data_dir());
            command.arg("--config").arg(&place.config);
            assert_refused(&mut command, &[&address]);
        }
        return;
    }
    let place = Place::new(&nobody_there());
    for mut command in place.commands(kind) {
        command.env("EARSHOT_OPS__LISTEN", &address);
        assert_refused(&mut command, &[&address]);
    }
    let mut gateway = service("api-gateway", &place.config);
    gateway.env("EARSHOT_GATEWAY__LISTEN", &address);
    assert_refused(&mut gateway, &[&address]);
}

pub(crate) fn wrong_usage(kind: Kind) {
    let place = Place::new(&nobody_there());
    for mut command in place.commands(kind) {
        let ended = programs::finish(command.arg("--frobnicate"), WITHIN);
        assert_eq!(ended.code, Some(2), "{ended:#?}");
        assert!(ended.stderr.contains("--frobnicate"), "{ended:#?}");
    }
    let names: &[&str] = if kind == Kind::Dev {
        &["earshot"]
    } else {
        &SERVICES
    };
    for name in names {
        for (option, said) in [
            ("--help", "Usage"),
            ("--version", env!("CARGO_PKG_VERSION")),
        ] {
            let ended = programs::finish(programs::command(name).arg(option), WITHIN);
            assert_eq!(ended.code, Some(0), "{ended:#?}");
            assert!(ended.stdout.contains(said), "{ended:#?}");
        }
    }
    if kind == Kind::Dev {
        for arguments in [
            &["keys", "create"][..],
            &["frobnicate"],
            &["keys", "create", "--account", "a", "--role", "KING"],
        ] {
            let ended = programs::finish(programs::command("earshot").args(arguments), WITHIN);
            assert_eq!(ended.code, Some(2), "{arguments:?}: {ended:#?}");
        }
    }
}

/// `check-config` validates the configuration without a database, a broker or a port.
pub(crate) fn check_config(kind: Kind) {
    let (_listener, address) = busy_address();
    let settings = match kind {
        Kind::Dev => config::common("http://127.0.0.1:9"),
        Kind::Distributed => nobody_there(),
    };
    let place = Place::new(&settings);
    for mut command in place.commands(kind) {
        command.env("EARSHOT_OPS__LISTEN", &address);
        let ended = programs::finish(command.arg("--check-config"), WITHIN);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
    }
    assert!(!place.data_dir().exists());
    let place = Place::new("[scanner]\npol_interval = \"5s\"");
    for mut command in place.commands(kind) {
        command.arg("--check-config");
        assert_refused(&mut command, &["scanner.pol_interval"]);
    }
}
