//! Refuses tests that depend on the speed of the machine: upper limits of elapsed time, and sleeps over 200 ms.
//!
//! A test asserts an order or a number instead, waits with `test_support::eventually`, and advances time (tokio's paused
//! time, `TestDatabase::skew_clock`). Limits of speed belong to `cargo xtask bench`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod documents;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use documents::{files, root};
use syn::{
    Attribute, BinOp, Expr, ExprBinary, ExprCall, ExprMethodCall, File, ImplItemFn, Item,
    ItemConst, ItemFn, ItemMod, Lit, Local, Macro, Pat, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

/// Shorter sleeps let others run, or space out the looks of a loop.
const LONGEST_SLEEP: Duration = Duration::from_millis(200);

/// Waits to see that nothing happens. A slow machine sees less, and does not fail; a later event would prove more.
const NOTHING_HAPPENS: &str = "waits to see that nothing happens";

/// What may stay: file, function, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    (
        "crates/api-gateway/tests/api/security/throttle.rs",
        "only_the_guessing_address_is_throttled",
        "the cache of keys is the process's, and forgets by its own clock",
    ),
    (
        "crates/api-gateway/tests/api/tls.rs",
        "certificate_is_replaced_without_downtime",
        "nothing shows that a wrong file was looked at",
    ),
    (
        "crates/backbone/tests/it/alerts.rs",
        "alert_fires_when_the_pool_is_too_small",
        "the wait is the cause: the alert is about waits of seconds",
    ),
    (
        "crates/platforms/tests/it/hackernews.rs",
        "posts_that_a_stale_search_returns_late_are_found",
        "how long the simulated search is behind; tried again with longer if the machine is slow",
    ),
    (
        "crates/private-servers/tests/postgres.rs",
        "be_the_parent_process",
        "not a test: a process that is killed",
    ),
    (
        "crates/runtime/tests/process.rs",
        "serve",
        "not a test: a process that hangs",
    ),
    (
        "crates/store/tests/it/scans.rs",
        "write_on",
        "at most 2 ms, different for each writer",
    ),
    (
        "crates/test-support/src/lib.rs",
        "eventually",
        "at most 100 ms between two looks",
    ),
    (
        "crates/test-support/src/server.rs",
        "serve",
        "the delay of a scripted answer",
    ),
    (
        "tests-e2e/src/attacks/host.rs",
        "handle",
        "the delay of a slow feed",
    ),
    (
        "tests-e2e/src/faults/absences.rs",
        "disturb",
        "moment and length of a random fault",
    ),
    (
        "tests-e2e/src/faults/absences.rs",
        "run",
        "time between two absences",
    ),
    (
        "tests-e2e/src/faults/load.rs",
        "go_on",
        "random pauses of the load",
    ),
    (
        "tests-e2e/src/faults/pollers.rs",
        "poll",
        "a client's pause between two requests",
    ),
    (
        "tests-e2e/src/faults/refusals.rs",
        "fill",
        "how long the disk is full",
    ),
    (
        "tests-e2e/src/faults/servers.rs",
        "disturb",
        "moment and length of a random fault",
    ),
    (
        "tests-e2e/src/faults/services.rs",
        "disturb",
        "moment and length of a random fault",
    ),
    (
        "tests-e2e/src/harness/proxy.rs",
        "carry",
        "the delay of a slow network",
    ),
    (
        "tests-e2e/src/harness/receiver.rs",
        "handle",
        "the delay of a slow receiver",
    ),
    (
        "tests-e2e/src/harness/site.rs",
        "handle",
        "the delay of a slow page",
    ),
    (
        "tests-e2e/src/harness/wait.rs",
        "ask_within",
        "at most half a second between two looks",
    ),
    (
        "tests-e2e/src/scenarios/kills.rs",
        "run",
        "how long a killed process is away, at random",
    ),
    (
        "crates/scanner/tests/it/budgets.rs",
        "pause_of_a_platform_applies_to_all_feeds_and_replicas",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/budgets.rs",
        "replicas_share_a_platforms_budget",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/days.rs",
        "later_read_fills_and_closes_a_gap",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/failures.rs",
        "database_outages_lose_no_post",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/fresh.rs",
        "nothing_is_ready_before_the_index_is_read",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/ids.rs",
        "id_account_names_exactly_the_hidden_posts",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/ids.rs",
        "until_checked",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/live.rs",
        "expired_mute_has_no_effect_without_an_event",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/plans.rs",
        "disabled_manager_matches_nothing_and_its_feeds_are_not_polled",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/replicas.rs",
        "a_poll_that_lost_its_lease_stores_nothing",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/replicas.rs",
        "feeds_of_a_dead_replica_are_taken_over",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/scans.rs",
        "scans_posts_and_cursor_are_stored_together_or_not_at_all",
        NOTHING_HAPPENS,
    ),
    (
        "crates/scanner/tests/it/schedule.rs",
        "requests_grow_with_feeds_and_not_with_managers",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/changed.rs",
        "commits",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/changed.rs",
        "deliveries_of_a_deleted_connection_are_not_claimed",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/endings.rs",
        "expired_deliveries_can_be_replayed",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/endings.rs",
        "shutdown_writes_hints_of_deliveries_that_were_requested_during_their_request",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/endings.rs",
        "shutdown_writes_hints_of_deliveries_whose_return_was_slow",
        NOTHING_HAPPENS,
    ),
    (
        "crates/webhook-dispatcher/tests/it/alerts.rs",
        "alerts_fire_when_first_attempts_are_late",
        "the wait is the cause: attempts are late after seconds",
    ),
];

/// What one file has against the rule, with the function that has it.
struct Finder {
    consts: BTreeMap<String, Duration>,
    functions: Vec<String>,
    /// Variables that hold an elapsed time.
    elapsed: BTreeSet<String>,
    is_test: bool,
    found: Vec<(String, &'static str)>,
    /// Modules of other files that are compiled for tests only.
    test_modules: Vec<String>,
}

impl Finder {
    fn new(file: &File, is_test: bool) -> Self {
        let mut consts = Consts::default();
        consts.visit_file(file);
        Self {
            consts: consts.0,
            functions: Vec::new(),
            elapsed: BTreeSet::new(),
            is_test,
            found: Vec::new(),
            test_modules: Vec::new(),
        }
    }

    fn report(&mut self, fault: &'static str) {
        if self.is_test {
            let function = self.functions.last().cloned().unwrap_or_default();
            self.found.push((function, fault));
        }
    }

    fn within(&mut self, name: String, attributes: &[Attribute], inner: impl FnOnce(&mut Self)) {
        let before = self.is_test;
        // Paused time costs nothing, and stands still while the machine is slow.
        self.is_test = (before || is_for_tests(attributes)) && !has_paused_time(attributes);
        let elapsed = std::mem::take(&mut self.elapsed);
        self.functions.push(name);
        inner(self);
        self.functions.pop();
        self.elapsed = elapsed;
        self.is_test = before;
    }

    fn measures(&self, expression: &Expr) -> bool {
        struct Measure<'a>(&'a BTreeSet<String>, bool);
        impl Visit<'_> for Measure<'_> {
            fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
                self.1 |= call.method == "elapsed" || call.method == "duration_since";
                visit::visit_expr_method_call(self, call);
            }
            fn visit_ident(&mut self, name: &syn::Ident) {
                self.1 |= self.0.contains(&name.to_string());
            }
        }
        let mut measure = Measure(&self.elapsed, false);
        measure.visit_expr(expression);
        measure.1
    }
}

impl Visit<'_> for Finder {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        if module.content.is_none() && is_for_tests(&module.attrs) {
            self.test_modules.push(module.ident.to_string());
        }
        let before = self.is_test;
        self.is_test |= is_for_tests(&module.attrs);
        visit::visit_item_mod(self, module);
        self.is_test = before;
    }

    fn visit_item_fn(&mut self, function: &ItemFn) {
        let name = function.sig.ident.to_string();
        self.within(name, &function.attrs, |inner| {
            visit::visit_item_fn(inner, function)
        });
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        let name = function.sig.ident.to_string();
        self.within(name, &function.attrs, |inner| {
            visit::visit_impl_item_fn(inner, function)
        });
    }

    fn visit_local(&mut self, local: &Local) {
        if let (Pat::Ident(name), Some(init)) = (&local.pat, &local.init)
            && matches!(&*init.expr, Expr::MethodCall(call) if call.method == "elapsed" || call.method == "duration_since")
        {
            self.elapsed.insert(name.ident.to_string());
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_binary(&mut self, binary: &ExprBinary) {
        let limited = match binary.op {
            BinOp::Lt(_) | BinOp::Le(_) => &binary.left,
            BinOp::Gt(_) | BinOp::Ge(_) => &binary.right,
            _ => return visit::visit_expr_binary(self, binary),
        };
        if self.measures(limited) {
            self.report("an upper limit of elapsed time");
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &ExprMethodCall) {
        if call.method == "contains" && call.args.iter().any(|argument| self.measures(argument)) {
            self.report("an upper limit of elapsed time");
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &ExprCall) {
        let is_sleep = matches!(&*call.func, Expr::Path(path)
            if path.path.segments.last().is_some_and(|name| name.ident == "sleep"));
        if is_sleep && let Some(argument) = call.args.first() {
            let length = length(argument, &self.consts);
            if length.is_none_or(|length| length > LONGEST_SLEEP) {
                self.report("a sleep over 200 ms, or of unknown length");
            }
        }
        visit::visit_expr_call(self, call);
    }

    /// Arguments of `assert!` and similar macros are expressions.
    fn visit_macro(&mut self, called: &Macro) {
        if let Ok(arguments) =
            called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
        {
            for argument in &arguments {
                self.visit_expr(argument);
            }
        }
    }
}

#[derive(Default)]
struct Consts(BTreeMap<String, Duration>);

impl Visit<'_> for Consts {
    fn visit_item_const(&mut self, item: &ItemConst) {
        if let Some(length) = length(&item.expr, &self.0) {
            self.0.insert(item.ident.to_string(), length);
        }
    }
}

/// Returns the duration that an expression of literals and constants has.
fn length(expression: &Expr, consts: &BTreeMap<String, Duration>) -> Option<Duration> {
    match expression {
        Expr::Call(call) => {
            let Expr::Path(path) = &*call.func else {
                return None;
            };
            let number = integer(call.args.first()?)?;
            match path.path.segments.last()?.ident.to_string().as_str() {
                "from_secs" => Some(Duration::from_secs(number)),
                "from_millis" => Some(Duration::from_millis(number)),
                "from_micros" => Some(Duration::from_micros(number)),
                _ => None,
            }
        }
        Expr::Path(path) => consts
            .get(&path.path.segments.last()?.ident.to_string())
            .copied(),
        Expr::Binary(binary) => match binary.op {
            BinOp::Mul(_) => {
                let (number, other) = integer(&binary.left)
                    .map(|number| (number, &binary.right))
                    .or_else(|| Some((integer(&binary.right)?, &binary.left)))?;
                Some(length(other, consts)? * u32::try_from(number).ok()?)
            }
            BinOp::Div(_) => {
                Some(length(&binary.left, consts)? / u32::try_from(integer(&binary.right)?).ok()?)
            }
            _ => None,
        },
        _ => None,
    }
}

fn integer(expression: &Expr) -> Option<u64> {
    let Expr::Lit(literal) = expression else {
        return None;
    };
    let Lit::Int(number) = &literal.lit else {
        return None;
    };
    number.base10_parse().ok()
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let is_test = path
            .segments
            .last()
            .is_some_and(|name| name.ident == "test");
        is_test
            || path.is_ident("cfg")
                && attribute
                    .parse_args::<syn::Path>()
                    .is_ok_and(|cfg| cfg.is_ident("test"))
    })
}

fn has_paused_time(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute
            .meta
            .require_list()
            .is_ok_and(|list| list.tokens.to_string().contains("start_paused"))
    })
}

/// Faults of all test code: the file, the function, and what is wrong.
fn faults() -> (usize, Vec<(PathBuf, String, &'static str)>) {
    let mut paths = Vec::new();
    for folder in ["crates", "tests-e2e", "xtask"] {
        files(Path::new(folder), "rs", &mut paths);
    }
    paths.sort();
    let mut test_modules: BTreeSet<PathBuf> = BTreeSet::new();
    let mut seen = 0;
    let mut faults = Vec::new();
    for path in paths {
        let text = path.to_str().unwrap();
        // These measure: that is their purpose.
        if text.starts_with("crates/bench/src") {
            continue;
        }
        let is_test = text.contains("/tests/")
            || text.ends_with("/tests.rs")
            || text.starts_with("tests-e2e/")
            || text.starts_with("crates/test-support/")
            || path
                .ancestors()
                .any(|part| test_modules.contains(&part.with_extension("")));
        seen += usize::from(is_test);
        let file = syn::parse_file(&fs::read_to_string(root().join(&path)).unwrap()).unwrap();
        let mut finder = Finder::new(&file, is_test);
        finder.visit_file(&file);
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let folder = match stem {
            "lib" | "main" | "mod" => path.parent().unwrap().to_owned(),
            _ => path.with_extension(""),
        };
        test_modules.extend(finder.test_modules.iter().map(|module| folder.join(module)));
        faults.extend(
            finder
                .found
                .into_iter()
                .map(|(function, fault)| (path.clone(), function, fault)),
        );
    }
    (seen, faults)
}

#[test]
fn no_test_depends_on_the_speed_of_the_machine() {
    let (seen, faults) = faults();
    assert!(seen > 200, "only {seen} files of tests were found");
    let excepted = |path: &Path, function: &str| {
        EXCEPTIONS
            .iter()
            .any(|(file, name, _)| Path::new(file) == path && *name == function)
    };
    let wrong: Vec<String> = faults
        .iter()
        .filter(|(path, function, _)| !excepted(path, function))
        .map(|(path, function, fault)| format!("{}: {function}: {fault}", path.display()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for (file, name, reason) in EXCEPTIONS {
        let is_needed = faults
            .iter()
            .any(|(path, function, _)| path == Path::new(file) && function == name);
        assert!(is_needed, "no longer needed: {file}: {name} ({reason})");
    }
}

fn found_in(code: &str) -> Vec<&'static str> {
    let file: File = syn::parse_str(code).unwrap();
    assert!(
        file.items
            .iter()
            .all(|item| !matches!(item, Item::Verbatim(_)))
    );
    let mut finder = Finder::new(&file, false);
    finder.visit_file(&file);
    finder.found.into_iter().map(|(_, fault)| fault).collect()
}

#[test]
fn limits_and_sleeps_of_tests_are_found() {
    for bad in [
        "#[test] fn a() { assert!(begin.elapsed() < LIMIT, \"{text}\"); }",
        "#[test] fn a() { let took = begin.elapsed(); assert!((ONE..=TWO).contains(&took)); }",
        "#[test] fn a() { if LIMIT >= end.duration_since(begin) { return; } }",
        "#[cfg(test)] mod tests { async fn a() { tokio::time::sleep(Duration::from_secs(1)).await; } }",
        "const PAUSE: Duration = Duration::from_millis(150); #[test] fn a() { sleep(2 * PAUSE); }",
        "#[tokio::test] async fn a() { sleep(lag).await; }",
    ] {
        assert_eq!(found_in(bad).len(), 1, "{bad}");
    }
    for good in [
        "fn a() { if begin.elapsed() < LIMIT { sleep(Duration::from_secs(1)); } }",
        "#[test] fn a() { assert!(begin.elapsed() >= LEAST); sleep(Duration::from_millis(20)); }",
        "#[tokio::test(start_paused = true)] async fn a() { sleep(Duration::from_secs(9)).await; }",
        "#[test] fn a() { let took = begin.elapsed(); println!(\"{took:?}\"); assert!(a < b); }",
    ] {
        assert!(found_in(good).is_empty(), "{good}");
    }
}
