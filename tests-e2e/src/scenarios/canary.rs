//! Recognisable secrets in all places that hold secrets: no output may contain one of them.
//!
//! The service runs for a while with every secret in use. Most requests with a secret are refused by their target,
//! because failures reveal more than successes. Then its servers die and come back. The test searches the logs, at
//! `debug`, and the answers of the service. Where possible, it checks that each secret was really used.

use std::{collections::BTreeMap, fmt::Write, path::PathBuf, time::Duration};

use http::Method;
use private_servers::{Postgres, RabbitMq, postgres::Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::block_in_place;

use crate::{
    customer,
    harness::{
        api::{self, Api},
        config, eventually, free_address,
        process::Process,
        programs,
        receiver::Receiver,
        simulator::Simulator,
        site::Site,
    },
};

const PATIENCE: Duration = Duration::from_secs(120);
const SERVICES: [&str; 4] = [
    "api-gateway",
    "manager-compiler",
    "scanner",
    "webhook-dispatcher",
];
const TRIED_KEY: &str =
    "esk_01arz3ndektsv4rrffq69g5fav_c4n4ryTriedKeyc4n4ryTriedKeyc4n4ryTriedKeyA";
/// 24 bytes, in base64.
const SIGNING: &str = "c4n4rySigningSecretc4n4rySigning";
const PAYLOAD: &str = "c4n4ryPayload";
const WORD: &str = "beeswax";

/// Secrets that must not appear, by their purpose.
struct Secrets(BTreeMap<&'static str, String>);

impl Secrets {
    fn new() -> Self {
        let fixed = [
            ("broker's password", "c4n4ryBroker"),
            (
                "encryption key",
                "c4n4ryEncryptionKeyc4n4ryEncryptionKeyc4n4o",
            ),
            ("model's key", "c4n4ryModelKey"),
            ("judge's key", "c4n4ryJudgeKey"),
            ("reddit's secret", "c4n4ryReddit"),
            ("discourse's key", "c4n4ryDiscourse"),
            ("mastodon's token", "c4n4ryMastodon"),
            ("x's token", "c4n4ryBearerOfX"),
            ("linkedin's token", "c4n4ryLinkedIn"),
            ("facebook's token", "c4n4ryFacebook"),
            ("header of a Connection", "c4n4ryHeaderValue"),
            ("signing secret", SIGNING),
            (
                "key that was tried",
                "c4n4ryTriedKeyc4n4ryTriedKeyc4n4ryTriedKeyA",
            ),
            ("payload", PAYLOAD),
        ];
        Self(fixed.map(|(what, text)| (what, text.to_owned())).into())
    }

    fn of(&self, what: &str) -> &str {
        &self.0[what]
    }

    fn add_key(&mut self, what: &'static str, key: &str) {
        // The part after the name, which may contain an underscore.
        let secret = key.splitn(3, '_').nth(2).unwrap();
        self.0.insert(what, secret.to_owned());
    }

    #[track_caller]
    fn assert_untold(&self, place: &str, text: &str) {
        for (what, secret) in &self.0 {
            let Some(at) = text.find(secret.as_str()) else {
                continue;
            };
            let line = text[..at].lines().next_back().unwrap_or_default();
            panic!("{place} reveals the {what}, after: {line}");
        }
    }
}

/// The service, with private servers.
struct World {
    secrets: Secrets,
    config: PathBuf,
    // Processes stop before the servers that they use.
    processes: Vec<Process>,
    ops: Vec<String>,
    api_url: String,
    owner: String,
    viewer: String,
    rabbitmq: Option<RabbitMq>,
    postgres: Option<Postgres>,
    simulator: Simulator,
    site: Site,
    model: Receiver,
    collector: Receiver,
    directory: TempDir,
}

pub(crate) async fn run() {
    let mut world = World::start().await;
    let receiver = use_everything(&world).await;
    let answers = ask(&world).await;
    world.lose_servers().await;
    let traces = world.traces().await;

    let used = |requests: &Receiver, what: &str| {
        let secret = world.secrets.of(what);
        let told = |(_, value): &(String, String)| value.contains(secret);
        let all = requests.deliveries();
        assert!(
            all.iter().any(|one| one.headers.iter().any(told)),
            "the {what} was not used"
        );
    };
    used(&receiver, "header of a Connection");
    used(&world.model, "model's key");
    let arrived = receiver.deliveries();
    let payload = |body: &[u8]| String::from_utf8_lossy(body).contains(PAYLOAD);
    assert!(
        arrived.iter().any(|one| payload(&one.body)),
        "no payload was sent"
    );

    let mut lines = 0;
    for process in &world.processes {
        let log = process.output();
        assert!(log.contains("DEBUG"), "nothing is logged at debug");
        lines += log.lines().count();
        world.secrets.assert_untold("a log", &log);
    }
    assert!(traces.len() > 1_000, "{} bytes of traces", traces.len());
    world.secrets.assert_untold("a trace", &traces);
    for (place, text) in &answers {
        world.secrets.assert_untold(place, text);
    }
    stored(&world.secrets, world.postgres.as_ref().unwrap());
    world.refusals();
    println!(
        "{} secrets, in {lines} lines of logs, {} bytes of traces and {} answers",
        world.secrets.0.len(),
        traces.len(),
        answers.len()
    );
}

/// In the database, header values and signing secrets are sealed, and keys hashed.
fn stored(secrets: &Secrets, postgres: &Postgres) {
    let all = "SELECT query_to_xml(format('SELECT t::text FROM %I AS t', table_name), true, true, '') \
               FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let text = block_in_place(|| postgres.query(all)).unwrap();
    assert!(text.contains(PAYLOAD), "posts are stored");
    for (what, secret) in secrets.0.iter().filter(|(what, _)| **what != "payload") {
        assert!(
            !text.contains(secret.as_str()),
            "the database contains the {what}"
        );
        let hex: String = secret.bytes().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        assert!(
            !text.contains(&hex),
            "the database contains the {what} as bytes"
        );
    }
}

impl World {
    async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut world = Self {
            secrets: Secrets::new(),
            config: directory.path().join("earshot.toml"),
            processes: Vec::new(),
            ops: Vec::new(),
            api_url: format!("http://{}", free_address()),
            owner: String::new(),
            viewer: String::new(),
            rabbitmq: None,
            postgres: None,
            simulator: Simulator::start(directory.path()).await,
            site: Site::start().await,
            model: Receiver::start().await,
            collector: Receiver::start().await,
            directory,
        };
        let servers = world.start_servers();
        std::fs::write(&world.config, world.settings() + &servers).unwrap();
        // They wait for the schema, and log it.
        SERVICES
            .into_iter()
            .for_each(|program| world.spawn(program));
        assert_eq!(world.operator(&["migrate"]).code, Some(0));
        world.owner = world.key("OWNER");
        world.ready().await;
        world.viewer = world.key("VIEWER");
        let (owner, viewer) = (world.owner.clone(), world.viewer.clone());
        world.secrets.add_key("owner's key", &owner);
        world.secrets.add_key("viewer's key", &viewer);
        world
    }

    /// Starts both servers with passwords, and returns the settings that name them.
    fn start_servers(&mut self) -> String {
        let home = self.directory.path();
        let (postgres, rabbitmq) = block_in_place(|| {
            std::thread::scope(|scope| {
                let rabbitmq = scope.spawn(|| RabbitMq::start(&home.join("rabbitmq")).unwrap());
                let postgres = Postgres::start(&home.join("postgres"), &Options::throwaway());
                (postgres.unwrap(), rabbitmq.join().unwrap())
            })
        });
        let database = postgres.url();
        let password = url::Url::parse(&database)
            .unwrap()
            .password()
            .unwrap_or_default()
            .to_owned();
        assert!(password.len() > 8, "the database has no password");
        self.secrets.0.insert("database's password", password);
        let broker = self.secrets.of("broker's password");
        for arguments in [
            &["add_user", "earshot", broker][..],
            &["set_permissions", "earshot", ".*", ".*", ".*"],
        ] {
            block_in_place(|| rabbitmq.control(arguments)).unwrap();
        }
        let settings = format!(
            r#"
[database]
url = "{database}"
[bus]
url = "amqp://earshot:{broker}@127.0.0.1:{}/%2f"
[secrets]
encryption_keys = ["test:{}="]
[outbound]
allow_cidrs = ["127.0.0.0/8", "::1/128"]
allow_http = true
"#,
            rabbitmq.port(),
            self.secrets.of("encryption key"),
        );
        (self.postgres, self.rabbitmq) = (Some(postgres), Some(rabbitmq));
        settings
    }

    fn settings(&self) -> String {
        let simulator = self.simulator.url();
        let mut settings = config::common(simulator).replace("\"info\"", "\"debug\"");
        let model = origin(&self.model);
        for (section, key) in [
            ("compiler.model", "model's key"),
            ("scanner.judge", "judge's key"),
        ] {
            let key = self.secrets.of(key);
            write!(
                settings,
                "[{section}]\nbase_url = \"{model}\"\nmodel = \"m\"\napi_key = \"{key}\"\n"
            )
            .unwrap();
        }
        for (kind, secret, more) in [
            (
                "reddit",
                "reddit's secret",
                "client_id = \"id\"\nuser_agent = \"linux:example:1 (by /u/x)\"",
            ),
            ("discourse", "discourse's key", "client_id = \"system\""),
            ("mastodon", "mastodon's token", ""),
            ("x", "x's token", "posts_per_day = 1000"),
            ("linkedin", "linkedin's token", "api_version = \"202610\""),
            ("facebook", "facebook's token", ""),
        ] {
            let name = if kind == "reddit" {
                "client_secret"
            } else {
                "token"
            };
            let secret = self.secrets.of(secret);
            write!(
                settings,
                "[[platforms]]\nname = \"{kind}\"\nkind = \"{kind}\"\nbase_url = \"{simulator}/{kind}\"\n\
                 poll_interval = \"300ms\"\n{name} = \"{secret}\"\n{more}\n"
            )
            .unwrap();
        }
        settings
    }

    fn spawn(&mut self, program: &'static str) {
        let mut command = programs::command(program);
        let ops = free_address();
        let listen = self.api_url.trim_start_matches("http://").to_owned();
        command.arg("--config").arg(&self.config);
        command.env("EARSHOT_GATEWAY__LISTEN", listen);
        command.env("EARSHOT_OPS__LISTEN", &ops);
        // Protobuf contains texts unencoded.
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", origin(&self.collector));
        command.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        command.env("OTEL_TRACES_SAMPLER", "always_on");
        command.env("OTEL_BSP_SCHEDULE_DELAY", "500");
        self.ops.push(format!("http://{ops}"));
        let process = Process::spawn(program, &mut command, self.directory.path());
        self.processes.push(process);
    }

    async fn ready(&self) {
        let client = api::client();
        for ops in &self.ops {
            let url = format!("{ops}/readyz");
            eventually(&format!("{url} says yes"), PATIENCE, async || {
                let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
                answer.ok().filter(|answer| answer.status == 200)
            })
            .await;
        }
    }

    fn operator(&self, arguments: &[&str]) -> programs::Ended {
        let mut command = programs::command("earshot");
        command.args(arguments).arg("--config").arg(&self.config);
        block_in_place(|| programs::finish(&mut command, PATIENCE))
    }

    fn key(&self, role: &str) -> String {
        let created = self.operator(&["keys", "create", "--account", "acme", "--role", role]);
        assert_eq!(created.code, Some(0), "{created:?}");
        created.stdout.trim().to_owned()
    }

    /// Both servers die, requests fail, and everything recovers.
    async fn lose_servers(&mut self) {
        let (mut postgres, mut rabbitmq) =
            (self.postgres.take().unwrap(), self.rabbitmq.take().unwrap());
        block_in_place(|| {
            postgres.kill();
            rabbitmq.kill();
        });
        let api = Api::new(&self.api_url, &self.owner);
        eventually("the API reports the failure", PATIENCE, async || {
            let answer = api
                .try_request(Method::GET, "/v1/namespaces", &[], None)
                .await?;
            self.secrets
                .assert_untold("an answer", &String::from_utf8_lossy(&answer.body));
            (answer.status == 503).then_some(())
        })
        .await;
        block_in_place(|| {
            postgres.restart().unwrap();
            rabbitmq.restart().unwrap();
        });
        (self.postgres, self.rabbitmq) = (Some(postgres), Some(rabbitmq));
        self.ready().await;
    }

    /// Returns all that the collector received, once there is something.
    async fn traces(&self) -> String {
        eventually("traces are sent", PATIENCE, async || {
            (self.collector.count() > 2).then_some(())
        })
        .await;
        let batches = self.collector.deliveries().into_iter();
        batches
            .map(|one| String::from_utf8_lossy(&one.body).into_owned())
            .collect()
    }

    /// An invalid setting is named, and its value is not repeated.
    fn refusals(&self) {
        for (variable, value) in [
            ("EARSHOT_DATABASE__URL", "c4n4ryBroker://c4n4ryBroker@/"),
            ("EARSHOT_BUS__URL", "amqp:c4n4ryBroker@:x"),
            ("EARSHOT_SECRETS__ENCRYPTION_KEYS", "test:c4n4ryBroker"),
            ("EARSHOT_SECRETS__ENCRYPTION_KEYS", "c4n4ryBroker"),
            ("EARSHOT_COMPILER__MODEL__API_KEY", "c4n4ryBroker\u{7}\n"),
        ] {
            let mut command = programs::command("api-gateway");
            command
                .arg("--check-config")
                .arg("--config")
                .arg(&self.config);
            command.env(variable, value);
            let ended = block_in_place(|| programs::finish(&mut command, PATIENCE));
            self.secrets.assert_untold(variable, &ended.said());
        }
        let listed = self.operator(&["keys", "list"]);
        assert!(listed.stdout.contains("VIEWER"), "{listed:?}");
        self.secrets.assert_untold("keys list", &listed.said());
    }
}

fn origin(server: &Receiver) -> String {
    let url = url::Url::parse(&server.url()).unwrap();
    url.origin().ascii_serialization()
}

/// Uses each secret for its purpose; returns the customer's server.
async fn use_everything(world: &World) -> Receiver {
    let api = Api::new(&world.api_url, &world.owner);
    let receiver = Receiver::start().await;
    let namespace = api.create_namespace("Canaries").await;
    let connection = json!({
        "nickname": "receiver", "type": "HTTP_CONNECTION", "url": receiver.url(),
        "headers": {"x-secret": world.secrets.of("header of a Connection")},
        "signingSecrets": [format!("whsec_{SIGNING}")],
    });
    let made = api
        .post(&format!("/v1/{namespace}/connections"), &connection)
        .await;
    assert_eq!(made.status, 201, "{}", made.json());
    let connection = made.json()["name"].as_str().unwrap().to_owned();

    let watch = async |source: &str, feeds: &[&str]| -> Value {
        let mut manager = customer::word_manager(source, WORD, &connection);
        manager["instructions"]["feeds"] = json!(feeds);
        api.create_manager(&namespace, &manager).await
    };
    let forums = watch(
        "FORUM",
        &["hackernews:newest", "reddit:r/rust", "discourse:latest"],
    )
    .await;
    let blogs = watch("MICROBLOG", &["x:search/bees", "mastodon:tag/bees"]).await;
    let networks = watch("NETWORK", &["linkedin:organization/1", "facebook:page/1"]).await;
    let page = customer::manager("Beekeepers", "FORUM", &[world.site.url("/")], &connection);
    let page = api.create_manager(&namespace, &page).await;
    for manager in [&forums, &blogs, &networks, &page] {
        api.applied(manager, PATIENCE).await;
    }
    world
        .simulator
        .publish(&[json!({
            "platform": "hackernews", "title": format!("About {WORD}"), "author": "someone",
            "text": format!("There is nothing else to say about it than {PAYLOAD}."),
        })])
        .await;
    receiver.wait_for(1, PATIENCE).await;
    receiver
}

/// Returns the responses of the service, by their source.
async fn ask(world: &World) -> Vec<(String, String)> {
    let client = api::client();
    let mut answers = Vec::new();
    for ops in &world.ops {
        for path in ["/metrics", "/healthz", "/readyz", "/"] {
            answers.push((Method::GET, format!("{ops}{path}"), String::new()));
        }
    }
    for path in ["/docs", "/openapi.json", "/openapi.yaml", "/console/"] {
        answers.push((
            Method::GET,
            format!("{}{path}", world.api_url),
            String::new(),
        ));
    }
    let viewer = Api::new(&world.api_url, &world.viewer);
    let namespaces = viewer.get("/v1/namespaces").await.json();
    let namespace = namespaces["namespaces"][0]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    for path in [
        "connections",
        "managers",
        "stats?startTime=2026-01-01T00:00:00Z&step=DAY",
    ] {
        let url = format!("{}/v1/{namespace}/{path}", world.api_url);
        answers.push((Method::GET, url, world.viewer.clone()));
    }
    for (method, path) in [
        (Method::GET, "/v1/caller"),
        (Method::GET, "/v1/nowhere"),
        (Method::POST, "/v1/namespaces"),
    ] {
        answers.push((
            method.clone(),
            format!("{}{path}", world.api_url),
            world.owner.clone(),
        ));
        answers.push((
            method,
            format!("{}{path}", world.api_url),
            TRIED_KEY.to_owned(),
        ));
    }
    let mut told = Vec::new();
    for (method, url, key) in answers {
        let authorization = format!("Bearer {key}");
        let headers = [("authorization", authorization.as_str())];
        let headers = if key.is_empty() { &[][..] } else { &headers };
        let answer = api::send(&client, method.clone(), &url, headers, None).await;
        let head = format!("{:?}", answer.headers);
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            !url.ends_with("/metrics") || text.contains("earshot_build_info"),
            "{text}"
        );
        told.push((format!("{method} {url}"), head + &text));
    }
    told
}
