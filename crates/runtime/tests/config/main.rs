//! The configuration from an operator's view: files, variables, and error messages.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::{path::Path, time::Duration};

use domain::web_url::{self, WebUrl};
use runtime::config::{Config, Kind, Loader, LogFormat, reference};
use secrecy::ExposeSecret;

mod platforms;
mod servers;

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn load(toml: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    load_onto(Config::default(), toml, variables)
}

fn load_onto(base: Config, toml: &str, variables: &[(&str, &str)]) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("earshot.toml");
    std::fs::write(&path, toml).unwrap();
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let sources = Loader {
        base,
        file: Some(path.clone()),
        environment: variables,
        ..Loader::default()
    };
    let path = path.display().to_string();
    (sources.load()).map_err(|error| error.to_string().replace(&path, "earshot.toml"))
}

fn refused(toml: &str, variables: &[(&str, &str)]) -> String {
    load(toml, variables).unwrap_err()
}

/// Checks pairs of lines: a wrong setting, and its message.
fn each_is_refused(cases: &str) {
    let lines: Vec<_> = cases.trim().lines().collect();
    for case in lines.chunks(2) {
        assert_eq!(refused(case[0], &[]), case[1]);
    }
}

#[test]
fn sample_configuration_is_valid() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/earshot.toml");
    let config = runtime::config::load(Some(&sample), Vec::new()).unwrap();
    config.check_service("scanner").unwrap();
    assert_eq!(config.platforms.len(), 3);
}

#[test]
fn commented_values_of_the_sample_are_the_defaults() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/earshot.toml");
    let sample = std::fs::read_to_string(sample).unwrap();
    let is_setting = |line: &str| {
        let key = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
    };
    let uncommented: Vec<_> = sample
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if is_setting(rest) && !rest.contains("_file") => rest,
            _ => line,
        })
        .filter(|line| {
            let required = ["models.example", "some-model", "/usr/share/earshot"];
            !required.iter().any(|value| line.contains(value))
        })
        .collect();
    let config = load(&uncommented.join("\n"), &[]).unwrap();
    let defaults = load(&sample, &[]).unwrap();
    let settings = |config: &Config| {
        let shown = format!("{config:?}");
        // Each was read from another file.
        shown.split_once(", origin: ").unwrap().0.to_owned()
    };
    assert_eq!(settings(&config), settings(&defaults));
    assert!(uncommented.contains(&"max_in_flight = 512"));
}

/// The demo of the composition names its receiver and its simulator by their services.
#[test]
fn demo_of_the_composition_may_contact_its_services() {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/compose/demo.env");
    let demo = std::fs::read_to_string(demo).unwrap();
    let variables: Vec<_> = demo
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| key.starts_with("EARSHOT_OUTBOUND__"))
        .collect();
    let policy = load("", &variables).unwrap().outbound.address_policy();
    for (url, kind) in [
        ("http://receiver:8000/", web_url::Kind::Connection),
        ("http://platform-simulator:9099/demo/", web_url::Kind::Seed),
    ] {
        assert!(demo.contains(url), "{url}");
        WebUrl::parse(url, &policy, kind).unwrap();
    }
}

#[test]
fn configuration_reference_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations/configuration.md");
    let committed = std::fs::read_to_string(page).unwrap();
    assert!(
        committed == reference(),
        "docs/operations/configuration.md is out of date: run `cargo xtask generate`"
    );
}

#[test]
fn variables_override_the_file_and_the_file_overrides_defaults() {
    let toml = "[scanner]\npoll_interval_min = '7s'\nbackfill = '1h'";
    let config = load(toml, &[("EARSHOT_SCANNER__BACKFILL", "2d")]).unwrap();
    assert_eq!(config.scanner.poll_interval_min, Duration::from_secs(7));
    assert_eq!(config.scanner.backfill, Duration::from_secs(2 * 86_400));
    assert_eq!(config.dispatcher.timeout, Duration::from_secs(10));
}

#[test]
fn variables_accept_every_type_of_value() {
    let config = load(
        "",
        &[
            ("EARSHOT_GATEWAY__LISTEN", "[::1]:0"),
            ("EARSHOT_GATEWAY__TRUSTED_PROXIES", "10.0.0.0/8, fd00::/8"),
            ("EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE", "5"),
            ("EARSHOT_OUTBOUND__ALLOW_HTTP", "true"),
            ("EARSHOT_OUTBOUND__ALLOW_CIDRS", "[\"192.0.2.0/24\"]"),
            ("EARSHOT_DISPATCHER__RETRY_SCHEDULE", "1s,2s"),
            ("EARSHOT_LOG__FORMAT", "text"),
            ("EARSHOT_LOG__FILTER", "warn,scanner=debug"),
            (
                "EARSHOT_COMPILER__MODEL__BASE_URL",
                "https://models.example.com/v1",
            ),
            ("EARSHOT_COMPILER__MODEL__MODEL", "m"),
            ("EARSHOT_PLATFORMS__0__NAME", "hn"),
            ("EARSHOT_PLATFORMS__0__KIND", "hackernews"),
            ("EARSHOT_BUS__URL", ""),
            ("EARSHOT_SERVICE_HOST", "10.0.0.1"),
            ("PATH", "/bin"),
        ],
    )
    .unwrap();
    assert_eq!(config.gateway.listen.to_string(), "[::1]:0");
    assert_eq!(config.gateway.trusted_proxies.len(), 2);
    assert_eq!(config.gateway.rate_limit_per_minute, 5);
    assert!(config.outbound.allow_http);
    assert_eq!(config.outbound.allow_cidrs.len(), 1);
    assert_eq!(config.dispatcher.retry_schedule.len(), 2);
    assert_eq!(config.log.format, LogFormat::Text);
    assert_eq!(config.compiler.model.unwrap().model, "m");
    assert_eq!(config.platforms[0].kind, Kind::HackerNews);
}

#[test]
fn errors_name_key_reason_and_origin() {
    each_is_refused(
        r#"
scanner.pol_interval_min = '5s'
scanner.pol_interval_min: unknown key; did you mean `scanner.poll_interval_min`? (file earshot.toml)
scaner.backfill = '5s'
scaner.backfill: unknown key; did you mean `scanner.backfill`? (file earshot.toml)
nonsense = {}
nonsense: unknown key (file earshot.toml)
scanner = 5
scanner: is a section, not a value (file earshot.toml)
platforms = 5
platforms: is a section, not a value (file earshot.toml)
ops.listen.port = 1
ops.listen.port: unknown key, because `ops.listen` is a value, not a section (file earshot.toml)
dispatcher.timeout = 10
dispatcher.timeout: needs a unit, as in "5s" (file earshot.toml)
dispatcher.timeout = true
dispatcher.timeout: expected a duration such as "5s", "2h" or "30d", found type `boolean` (file earshot.toml)
dispatcher.timeout = '1h'
dispatcher.timeout: must lie between "100ms" and "2m" (file earshot.toml)
dispatcher.retry_schedule = ['5s', 'x']
dispatcher.retry_schedule: item 2: expected a duration such as "5s", "2h" or "30d": expected number at 0 (file earshot.toml)
dispatcher.retry_schedule = ['5s', '400d']
dispatcher.retry_schedule: item 2: must lie between "1ms" and "30d" (file earshot.toml)
dispatcher.lane_limit = '8'
dispatcher.lane_limit: expected a whole number, found type `string` (file earshot.toml)
dispatcher.lane_limit = -1
dispatcher.lane_limit: must lie between 1 and 1000 (file earshot.toml)
dispatcher.lane_limit = 65536
dispatcher.lane_limit: must lie between 1 and 1000 (file earshot.toml)
dispatcher.lane_limit = 0
dispatcher.lane_limit: must lie between 1 and 1000 (file earshot.toml)
outbound.proxy = 'socks5://me:hidden@proxy'
outbound.proxy: expected a URL that begins with http:// or https:// (file earshot.toml)
outbound.proxy = 'proxy:3128'
outbound.proxy: expected a URL that begins with http:// or https:// (file earshot.toml)
outbound.no_proxy = ['http://receiver']
outbound.no_proxy: item 1: expected a host name, an address or a network, not `http://receiver` (file earshot.toml)
outbound.allow_hosts = ['http://receiver']
outbound.allow_hosts: item 1: expected a host name such as "receiver", not `http://receiver` (file earshot.toml)
gateway.listen = 'localhost'
gateway.listen: expected an address and port such as "0.0.0.0:8080", not `localhost` (file earshot.toml)
outbound.allow_cidrs = ['10.0.0.0/64']
outbound.allow_cidrs: item 1: expected a network such as "10.0.0.0/8", not `10.0.0.0/64` (file earshot.toml)
log.format = 'xml'
log.format: expected one of `json`, `text`, not `xml` (file earshot.toml)
log.filter = 'loud'
log.filter: expected a level or directives such as "info,scanner=debug", not `loud` (file earshot.toml)
bus.url = 'http://localhost'
bus.url: expected a URL that begins with amqp:// or amqps://, or `in-process:` (file earshot.toml)
bus.url = 'amqp://localhost:port'
bus.url: has a port that is not a number between 1 and 65535 (file earshot.toml)
database.url = 'mysql://localhost'
database.url: expected a URL that begins with postgres:// (file earshot.toml)
scanner.judge.model = 'm'
scanner.judge.base_url: is required
scanner.judge = { model = 'm', base_url = 'https://a:b@m.example/v1' }
scanner.judge.base_url: must not contain credentials; use `api_key` (file earshot.toml)
scanner.judge = { model = 'm', base_url = 'https://m.example/v1', candidate_percent = 101 }
scanner.judge.candidate_percent: must lie between 5 and 100 (file earshot.toml)
dispatcher.smtp = { server = 'm.example', public_url = 'https://e.example' }
dispatcher.smtp.from: is required
dispatcher.smtp = { server = 'm.example', from = 'a@b.example', public_url = 'https://e.example', user = 'u' }
dispatcher.smtp.user: needs dispatcher.smtp.password too (file earshot.toml)
dispatcher.smtp = { server = 'm.example', from = 'a@b.example', public_url = 'https://e.example/?a=b' }
dispatcher.smtp.public_url: must have only a host and a path (file earshot.toml)
compiler.model.model = 'm'
compiler.model.base_url: is required
compiler.model = { model = 'm', base_url = 'file:///etc' }
compiler.model.base_url: expected an http(s) or ws(s) URL, not `file:` (file earshot.toml)
compiler.model = { model = 'm', base_url = 'ws://m.example/v1' }
compiler.model.base_url: expected a URL that begins with https:// or http:// (file earshot.toml)
compiler.model = { model = 'm', base_url = 'https://a:b@m.example/v1' }
compiler.model.base_url: must not contain credentials; use `api_key` (file earshot.toml)
compiler.model = { model = 'm', base_url = 'https://m.example/v1?x=y' }
compiler.model.base_url: must end with its path (file earshot.toml)
compiler.model = { model = 'm', base_url = 'https://m.example/v1', timeout = '2m' }
compiler.model.timeout: must lie between "1s" and "1m" (file earshot.toml)
"#,
    );
    let said = refused("[scanner]\nbackfill = ", &[]);
    assert!(
        said.starts_with("earshot.toml: line 2: not TOML: "),
        "{said}"
    );
}

#[test]
fn sign_in_needs_safe_addresses_and_a_grant() {
    let oidc = |changed: &str, value: &str| {
        let settings = [
            ("issuer", "'https://id.example.com/realms/acme'"),
            ("client_id", "'earshot'"),
            ("client_secret", "'hunter2'"),
            ("console_url", "'https://earshot.example.com/console/'"),
            ("grants", "['staff=acme:EDITOR']"),
            ("scopes", "['openid']"),
        ];
        let lines = settings.map(|(key, right)| {
            let value = if key == changed { value } else { right };
            format!("{key} = {value}\n")
        });
        load(&format!("[gateway.oidc]\n{}", lines.concat()), &[])
    };
    let config = oidc("", "").unwrap();
    assert!(!format!("{config:?}").contains("hunter2"));
    let settings = config.gateway.oidc.unwrap();
    assert_eq!(settings.session_length, Duration::from_secs(8 * 3_600));
    assert_eq!(settings.grants[0].group, "staff");
    for (key, value) in [
        ("issuer", "'http://127.0.0.1:8000'"),
        ("issuer", "'http://localhost'"),
        ("console_url", "'http://[::1]:8080/earshot/console/'"),
    ] {
        oidc(key, value).unwrap();
    }

    let unsafe_address = "must begin with https://; http:// is allowed on this machine only";
    for (key, value, reason) in [
        ("issuer", "'http://id.example.com'", unsafe_address),
        (
            "issuer",
            "'https://id.example.com/?a=b'",
            "must end with its path",
        ),
        (
            "issuer",
            "'id'",
            "expected an absolute URL: relative URL without a base",
        ),
        (
            "console_url",
            "'http://earshot.example.com/console/'",
            unsafe_address,
        ),
        (
            "console_url",
            "'https://earshot.example.com/'",
            "must end with /console/",
        ),
        ("grants", "[]", "must name a group"),
        (
            "grants",
            "['staff']",
            "item 1: expected `<group>=<account>:<role>`, not `staff`",
        ),
        ("scopes", "['email']", "must contain `openid`"),
    ] {
        let said = oidc(key, value).unwrap_err();
        assert_eq!(
            said,
            format!("gateway.oidc.{key}: {reason} (file earshot.toml)")
        );
    }
}

#[test]
fn invalid_variables_are_named() {
    let cases = "\
EARSHOT_SCANNER__BACKFIL=1h
scanner.backfil: unknown key; did you mean `scanner.backfill`? (environment variable EARSHOT_SCANNER__BACKFIL)
EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE=many
gateway.rate_limit_per_minute: expected a whole number, not `many` (environment variable EARSHOT_GATEWAY__RATE_LIMIT_PER_MINUTE)
EARSHOT_OUTBOUND__ALLOW_HTTP=yes
outbound.allow_http: expected true or false, not `yes` (environment variable EARSHOT_OUTBOUND__ALLOW_HTTP)
";
    let lines: Vec<_> = cases.lines().collect();
    for case in lines.chunks(2) {
        let variable = case[0].split_once('=').unwrap();
        assert_eq!(refused("", &[variable]), case[1]);
    }
}

#[test]
fn overflowing_numbers_are_reported_with_the_bounds_of_their_key() {
    let name = "EARSHOT_DISPATCHER__MAX_IN_FLIGHT";
    for value in ["-1", "4294967296", "99999999999999999999"] {
        let said = refused("", &[(name, value)]);
        let expected = "dispatcher.max_in_flight: must lie between 1 and 100000 ";
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn missing_double_underscores_are_reported() {
    for line in [
        "EARSHOT_GATEWAY_LISTEN gateway.listen EARSHOT_GATEWAY__LISTEN",
        "EARSHOT_DATABASE_URL_FILE database.url_file EARSHOT_DATABASE__URL_FILE",
        "EARSHOT_COMPILER_MODEL_BASE_URL compiler.model.base_url EARSHOT_COMPILER__MODEL__BASE_URL",
        "EARSHOT_PLATFORMS_2_BASE_URL platforms[2].base_url EARSHOT_PLATFORMS__2__BASE_URL",
    ] {
        let [name, key, right] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(
            refused("", &[(name, "hunter2")]),
            format!(
                "{key}: must be spelt {right}, with two underscores between its parts \
                 (environment variable {name})"
            )
        );
    }
    // Kubernetes sets these for services named `earshot` and `earshot-gateway`.
    let links = [
        ("EARSHOT_PORT", "tcp://10.0.0.1:80"),
        ("EARSHOT_SERVICE_HOST", "10.0.0.1"),
        ("EARSHOT_GATEWAY_SERVICE_HOST", "10.0.0.1"),
        ("EARSHOT_GATEWAY_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("EARSHOT_GATEWAY_LISTEN", ""),
    ];
    load("", &links).unwrap();
}

#[test]
fn all_problems_are_reported_together() {
    let said = refused(
        "[scanner]\nbackfill = 5\nx = 1\n[ops]\nlisten = 1",
        &[("EARSHOT_LOG__FORMAT", "xml")],
    );
    let keys: Vec<_> = said
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        keys,
        ["ops.listen", "scanner.backfill", "log.format", "scanner.x"]
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = runtime::config::load(Some(Path::new("/nowhere/earshot.toml")), Vec::new());
    let said = error.unwrap_err().to_string();
    assert!(
        said.starts_with("/nowhere/earshot.toml: cannot read the file: "),
        "{said}"
    );
}

#[test]
fn secrets_are_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let url = write("url", "postgres://a:hunter2@b/c\n");
    let keys = write("keys", &format!("new:{KEY}\nold:{KEY}\n"));
    let toml = format!("[database]\nurl_file = '{url}'");
    let config = load(&toml, &[("EARSHOT_SECRETS__ENCRYPTION_KEYS_FILE", &keys)]).unwrap();
    assert_eq!(
        config.database.url.expose_secret(),
        "postgres://a:hunter2@b/c"
    );
    let ids: Vec<_> = config
        .secrets
        .encryption_keys
        .iter()
        .map(|key| key.id())
        .collect();
    assert_eq!(ids, ["new", "old"]);

    let config = load(&toml, &[("EARSHOT_DATABASE__URL", "postgres://variable")]).unwrap();
    assert_eq!(config.database.url.expose_secret(), "postgres://variable");

    let twice = format!("{toml}\nurl = 'postgres://hunter2'");
    let said = refused(&twice, &[]);
    assert!(said.starts_with("database.url: is given twice"), "{said}");
    assert!(!said.contains("hunter2"));

    let said = refused("[bus]\nurl_file = '/nowhere/url'", &[]);
    assert!(
        said.starts_with("bus.url_file: `/nowhere/url`: cannot read the file"),
        "{said}"
    );
}

#[test]
fn secrets_are_never_printed() {
    let toml = format!(
        "[database]\nurl = 'postgres://a:hunter2@b/c'\n[bus]\nurl = 'amqp://a:hunter2@b'\n\
         [secrets]\nencryption_keys = ['k:{KEY}']\n\
         [compiler.model]\nbase_url = 'https://m.example'\nmodel = 'm'\napi_key = 'hunter2'"
    );
    let shown = format!("{:?}", load(&toml, &[]).unwrap());
    assert!(
        !shown.contains("hunter2") && !shown.contains("AAEC"),
        "{shown}"
    );

    for wrong in [
        "[database]\nurl = 'hunter2:x'",
        "[bus]\nurl = 'hunter2'",
        "[secrets]\nencryption_keys = ['hunter2']",
        "[secrets]\nencryption_keys = ['k:hunter2']",
        "[database]\nurl = 'hunter2",
        "[database]\nurl = ['hunter2']",
    ] {
        let said = refused(wrong, &[]);
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn dev_overlays_its_own_base() {
    let config = load_onto(Config::dev(), "", &[]).unwrap();
    assert!(config.bus.is_in_process() && config.outbound.allow_http);
    assert_eq!(config.outbound.allow_cidrs.len(), 2);
    let toml = "[outbound]\nallow_cidrs = ['10.1.0.0/16']";
    let config = load_onto(Config::dev(), toml, &[]).unwrap();
    assert_eq!(
        config.outbound.allow_cidrs,
        ["10.1.0.0/16".parse().unwrap()]
    );
    let said = config.check_service("scanner").unwrap_err().to_string();
    assert_eq!(
        said,
        "database.url: is required\n\
         bus.url: `in-process:` works in `earshot dev` only; a service needs amqp:// or amqps://"
    );
}

#[test]
fn services_need_what_they_use() {
    let toml = "[database]\nurl = 'postgres://a'\n[bus]\nurl = 'amqp://b'";
    let config = load(toml, &[]).unwrap();
    config.check_service("manager-compiler").unwrap();
    let said = config.check_service("api-gateway").unwrap_err().to_string();
    assert_eq!(said, "secrets.encryption_keys: is required");
}

#[test]
fn shutdown_grace_must_exceed_the_delivery_timeout() {
    let toml = format!(
        "[database]\nurl = 'postgres://a'\n[bus]\nurl = 'amqp://b'\n\
         [secrets]\nencryption_keys = ['k:{KEY}']\n[dispatcher]\ntimeout = '30s'"
    );
    let config = load(&toml, &[]).unwrap();
    config.check_service("api-gateway").unwrap();
    let error = config.check_service("webhook-dispatcher").unwrap_err();
    assert_eq!(
        error.to_string(),
        "ops.grace_period: must be at least `dispatcher.timeout`, or attempts are cut short"
    );
}
