//! The service under test, in either form, with its environment.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
    time::Duration,
};

use http::Method;
use private_servers::{Postgres, RabbitMq, free_port, postgres::Options};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::{
    api::{self, Api},
    config, eventually, eventually_or_lost,
    identities::{self, Variables},
    process::Process,
    programs, server_directory,
    simulator::Simulator,
    site::Site,
    sql,
};

const START: Duration = Duration::from_secs(120);
const COMMAND: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(120);

/// Form of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `earshot dev`.
    Dev,
    /// The four services, PostgreSQL and RabbitMQ.
    Distributed,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Distributed => "distributed",
        }
    }
}

/// A part that can be killed separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// The whole `earshot dev`.
    Dev,
    Gateway,
    Compiler,
    Scanner,
    Dispatcher,
    RabbitMq,
    Postgres,
}

impl Part {
    pub(crate) const SERVICES: [Self; 4] = [
        Self::Gateway,
        Self::Compiler,
        Self::Scanner,
        Self::Dispatcher,
    ];

    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Dev => "earshot",
            Self::Gateway => "api-gateway",
            Self::Compiler => "manager-compiler",
            Self::Scanner => "scanner",
            Self::Dispatcher => "webhook-dispatcher",
            Self::RabbitMq => "rabbitmq-server",
            Self::Postgres => "postgres",
        }
    }
}

/// A running service. Dropping it stops everything.
pub(crate) struct Stack {
    pub(crate) kind: Kind,
    pub(crate) api: Api,
    pub(crate) simulator: Simulator,
    pub(crate) site: Site,
    pub(crate) api_url: String,
    /// The OWNER's key, which `api` uses.
    pub(crate) owner_key: String,
    config: PathBuf,
    addresses: Addresses,
    running: Mutex<Running>,
    /// Each service's role and user.
    identities: BTreeMap<Part, Variables>,
    /// Environment of processes that are started from now on.
    variables: Mutex<Vec<(String, String)>>,
    /// Directory for logs and data.
    directory: TempDir,
}

/// Addresses that stay the same across restarts.
struct Addresses {
    api: String,
    ops: BTreeMap<Part, String>,
}

// Processes stop before the servers that they use.
#[derive(Default)]
struct Running {
    processes: BTreeMap<Part, Process>,
    rabbitmq: Option<RabbitMq>,
    postgres: Option<Postgres>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.processes.clear();
        // A clean end takes seconds, and what it has is not needed any more.
        if let Some(rabbitmq) = &mut self.rabbitmq {
            rabbitmq.kill();
        }
    }
}

impl Stack {
    pub(crate) async fn start(kind: Kind) -> Self {
        Self::configured(kind, |settings| settings).await
    }

    /// Starts the service with other settings than the usual ones.
    pub(crate) async fn configured(kind: Kind, settings: fn(String) -> String) -> Self {
        let directory = server_directory();
        let simulator = Simulator::start(directory.path()).await;
        let site = Site::start().await;
        let addresses = Addresses {
            api: free_address(),
            ops: [Part::Dev]
                .into_iter()
                .chain(Part::SERVICES)
                .map(|part| (part, free_address()))
                .collect(),
        };
        let api_url = format!("http://{}", addresses.api);
        let mut stack = Self {
            kind,
            api: Api::new(&api_url, ""),
            simulator,
            site,
            api_url,
            owner_key: String::new(),
            config: directory.path().join("earshot.toml"),
            addresses,
            running: Mutex::default(),
            identities: BTreeMap::new(),
            variables: Mutex::default(),
            directory,
        };
        let key = match kind {
            Kind::Dev => stack.start_dev(settings).await,
            Kind::Distributed => stack.start_distributed(settings).await,
        };
        // A busy machine may not serve each request in time.
        stack.api = Api::new(&stack.api_url, &key).patient();
        stack.owner_key = key;
        stack
    }

    async fn start_dev(&self, settings: fn(String) -> String) -> String {
        let settings = settings(config::common(self.simulator.url()));
        std::fs::write(&self.config, settings).unwrap();
        self.restart(Part::Dev).await
    }

    /// Starts the services first, because the order must not matter.
    async fn start_distributed(&mut self, with: fn(String) -> String) -> String {
        let home = self.directory.path();
        let (postgres, rabbitmq) = block_in_place(|| {
            std::thread::scope(|scope| {
                let rabbitmq = scope.spawn(|| RabbitMq::start(&home.join("rabbitmq")));
                let postgres =
                    Postgres::start(&home.join("postgres"), &Options::throwaway()).unwrap();
                (postgres, rabbitmq.join().unwrap().unwrap())
            })
        });
        self.identities = block_in_place(|| identities::make(&postgres, &rabbitmq, home));
        let broker = rabbitmq.amqp_url().replace("%2f", "earshot");
        let settings = config::distributed(self.simulator.url(), &postgres.url(), &broker);
        std::fs::write(&self.config, with(settings)).unwrap();
        {
            let mut running = self.running.lock().unwrap();
            running.postgres = Some(postgres);
            running.rabbitmq = Some(rabbitmq);
        }
        for part in Part::SERVICES {
            self.spawn(part);
        }
        let migrate = self.operator(&["migrate"]);
        assert!(migrate.code == Some(0), "earshot migrate: {migrate:#?}");
        for part in Part::SERVICES {
            self.ready(part).await;
        }
        self.key("acme", "OWNER")
    }

    /// Runs `earshot …` on this stack's database.
    pub(crate) fn operator(&self, arguments: &[&str]) -> programs::Ended {
        let mut command = programs::command("earshot");
        command.args(arguments);
        match self.kind {
            Kind::Dev => command.arg("--data-dir").arg(self.data_dir()),
            Kind::Distributed => command.arg("--config").arg(&self.config),
        };
        block_in_place(|| programs::finish(&mut command, COMMAND))
    }

    /// Returns a new key of an account.
    pub(crate) fn key(&self, account: &str, role: &str) -> String {
        let created = self.operator(&["keys", "create", "--account", account, "--role", role]);
        let key = created.stdout.trim().to_owned();
        let alone = key.starts_with("esk_") && !key.contains(char::is_whitespace);
        assert!(created.code == Some(0) && alone, "{created:#?}");
        key
    }

    /// Kills the part with SIGKILL.
    pub(crate) fn kill(&self, part: Part) {
        let mut running = self.running.lock().unwrap();
        match part {
            Part::RabbitMq => block_in_place(|| running.rabbitmq.as_mut().unwrap().kill()),
            Part::Postgres => block_in_place(|| running.postgres.as_mut().unwrap().kill()),
            _ => running.processes.get_mut(&part).unwrap().kill(),
        }
    }

    /// Starts a part at its previous address, if it was killed or not yet started, and returns when it is ready.
    /// Returns the key that `earshot dev` prints.
    pub(crate) async fn restart(&self, part: Part) -> String {
        if part == Part::RabbitMq {
            let mut rabbitmq = self.running.lock().unwrap().rabbitmq.take().unwrap();
            block_in_place(|| rabbitmq.restart()).unwrap();
            self.running.lock().unwrap().rabbitmq = Some(rabbitmq);
            return String::new();
        }
        if part == Part::Postgres {
            let mut postgres = self.running.lock().unwrap().postgres.take().unwrap();
            block_in_place(|| postgres.restart()).unwrap();
            self.running.lock().unwrap().postgres = Some(postgres);
            return String::new();
        }
        self.spawn(part);
        if part != Part::Dev {
            self.ready(part).await;
            return String::new();
        }
        let mut process = self
            .running
            .lock()
            .unwrap()
            .processes
            .remove(&part)
            .unwrap();
        let line = process.line("earshot ready ", START).await;
        self.running.lock().unwrap().processes.insert(part, process);
        self.ready(part).await;
        let api = format!("api={} ", self.api_url);
        assert!(line.contains(&api), "{line}");
        word(&line, "key=").to_owned()
    }

    /// Sends SIGTERM to `earshot dev`, or to all services at once; each must drain and exit 0.
    pub(crate) fn terminate(&self) {
        let mut running = self.running.lock().unwrap();
        running.processes.values().for_each(Process::ask_to_end);
        for (part, process) in &mut running.processes {
            let status = block_in_place(|| process.wait_for_end(STOP));
            assert!(status.success(), "{}: {status}", part.program());
        }
    }

    /// Waits for the end of work. With the four services, a wait in vain after which no work is left counts as a loss.
    pub(crate) async fn eventually<T>(
        &self,
        what: &str,
        within: Duration,
        ask: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        match self.kind {
            Kind::Dev => eventually(what, within, ask).await,
            Kind::Distributed => eventually_or_lost(what, within, |sql| self.query(sql), ask).await,
        }
    }

    /// Runs SQL on the database of the four services.
    fn query(&self, sql: &str) -> String {
        let answer = {
            let running = self.running.lock().unwrap();
            let postgres = running.postgres.as_ref().unwrap();
            block_in_place(|| sql::query_past_deadlocks(postgres, sql))
        };
        answer.unwrap()
    }

    /// Sets additional environment variables for processes that are started from now on.
    pub(crate) fn set_variables(&self, variables: Vec<(String, String)>) {
        *self.variables.lock().unwrap() = variables;
    }

    /// Returns the `/metrics` of a service.
    pub(crate) async fn metrics(&self, part: Part) -> String {
        let url = format!("http://{}/metrics", self.addresses.ops[&part]);
        let answer = api::send(&api::client(), Method::GET, &url, &[], None).await;
        assert_eq!(answer.status, 200, "{url}");
        String::from_utf8(answer.body.to_vec()).unwrap()
    }

    /// Returns the most memory that a service had at once since its start, in MiB; `None` if it has ended.
    pub(crate) fn peak_memory(&self, part: Part) -> Option<u64> {
        self.running.lock().unwrap().processes[&part].peak_memory()
    }

    /// Sends SIGTERM to one service.
    pub(crate) fn ask_to_end(&self, part: Part) {
        self.running.lock().unwrap().processes[&part].ask_to_end();
    }

    /// Waits for a part that was sent SIGTERM; it must drain and exit 0.
    pub(crate) fn wait_for_end(&self, part: Part) {
        let mut running = self.running.lock().unwrap();
        let process = running.processes.get_mut(&part).unwrap();
        let status = block_in_place(|| process.wait_for_end(STOP));
        assert!(status.success(), "{}: {status}", part.program());
    }

    /// Returns the status of a service's `/readyz`; `None` when no server answers.
    pub(crate) async fn readiness(&self, part: Part) -> Option<u16> {
        let url = format!("http://{}/readyz", self.addresses.ops[&part]);
        let answer = api::try_send(&api::client(), Method::GET, &url, &[], None).await;
        answer.ok().map(|answer| answer.status)
    }

    pub(crate) fn print_logs(&self) {
        let running = self.running.lock().unwrap();
        self.simulator.print_log();
        running.processes.values().for_each(Process::print_log);
    }

    fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn spawn(&self, part: Part) {
        let ops = &self.addresses.ops[&part];
        let mut command = programs::command(part.program());
        if part == Part::Dev {
            command.args(["dev", "--listen", &self.addresses.api, "--ops-listen", ops]);
            command.arg("--data-dir").arg(self.data_dir());
        }
        command.arg("--config").arg(&self.config);
        command.env("EARSHOT_GATEWAY__LISTEN", &self.addresses.api);
        command.env("EARSHOT_OPS__LISTEN", ops);
        if let Some(identity) = self.identities.get(&part) {
            command.envs(identity.iter().map(|(name, value)| (name, value)));
        }
        command.envs(self.variables.lock().unwrap().iter().cloned());
        let process = Process::spawn(part.program(), &mut command, self.directory.path());
        self.running.lock().unwrap().processes.insert(part, process);
    }

    async fn ready(&self, part: Part) {
        let url = format!("http://{}/readyz", self.addresses.ops[&part]);
        let client = api::client();
        eventually(&format!("{} is ready", part.program()), START, async || {
            {
                let mut running = self.running.lock().unwrap();
                let process = running.processes.get_mut(&part).unwrap();
                if let Some(status) = process.ended() {
                    panic!("{} ended: {status}\n{}", part.program(), process.output());
                }
            }
            let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
            answer.ok().filter(|answer| answer.status == 200)
        })
        .await;
    }
}

/// Returns the command of `earshot dev`, for tests of its start and its idle cost.
pub(crate) fn dev_command(config: &Path, data_dir: &Path) -> Command {
    let mut command = programs::command("earshot");
    command.args([
        "dev",
        "--listen",
        "127.0.0.1:0",
        "--ops-listen",
        "127.0.0.1:0",
    ]);
    command.arg("--data-dir").arg(data_dir);
    command.arg("--config").arg(config);
    command
}

/// Returns the word after `start` in a line of words.
pub(crate) fn word<'a>(line: &'a str, start: &str) -> &'a str {
    let mut words = line.split(' ');
    let found = words.find_map(|word| word.strip_prefix(start));
    found.unwrap_or_else(|| panic!("no `{start}` in: {line}"))
}

/// Returns an address in use, and the listener that occupies it.
pub(crate) fn busy_address() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

pub(crate) fn free_address() -> String {
    format!("127.0.0.1:{}", free_port().unwrap())
}
