//! Implements the commands: each sends a request and prints its answer.

use client::{Change, Client, Query};
use domain::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Command, Failure, Form, Given,
    arguments::{
        AuditVerb, Backfill, Common, ConnectionsVerb, Delete, DeliveriesVerb, List, ManagersVerb,
        Named, NamespacesVerb, Preview, Replay, ScansVerb, Update,
    },
    body::Body,
    code,
    output::{self, Printer},
    resources::{
        AUDIT_EVENTS, CONNECTIONS, Columns, DELIVERIES, FEEDS, MANAGERS, NAMESPACES, RESULTS,
        SCANS, named, namespace,
    },
};

pub(crate) async fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Namespaces(it) => {
            let desk = Desk::open(it.common, "namespaces", NAMESPACES)?;
            desk.namespaces(it.verb).await
        }
        Command::Managers(it) => {
            let desk = Desk::open(it.common, "managers", MANAGERS)?;
            desk.managers(it.verb).await
        }
        Command::Connections(it) => {
            let desk = Desk::open(it.common, "connections", CONNECTIONS)?;
            desk.connections(it.verb).await
        }
        Command::Scans(it) => {
            let desk = Desk::open(it.common, "scans", SCANS)?;
            desk.scans(it.verb).await
        }
        Command::Deliveries(it) => {
            let desk = Desk::open(it.common, "deliveries", DELIVERIES)?;
            desk.deliveries(it.verb).await
        }
        Command::Audit(it) => {
            let desk = Desk::open(it.common, "auditEvents", AUDIT_EVENTS)?;
            let AuditVerb::List(list) = it.verb;
            desk.list(&desk.own().await?, list).await
        }
        Command::Export(it) => code::export(it).await,
        Command::Diff(it) => code::diff(it).await,
        Command::Apply(it) => code::apply(it).await,
    }
}

/// State of the commands for one kind of resource.
struct Desk {
    client: Client,
    namespace: Option<String>,
    form: Form,
    collection: &'static str,
    columns: Columns,
}

impl Desk {
    fn open(common: Common, collection: &'static str, columns: Columns) -> Result<Self, Failure> {
        Ok(Self {
            client: common.place.client()?.with_test_mode(common.dry_run),
            namespace: common.namespace,
            form: Form::or_default(common.output),
            collection,
            columns,
        })
    }

    async fn namespaces(&self, verb: NamespacesVerb) -> Result<(), Failure> {
        match verb {
            NamespacesVerb::List(list) => self.list("namespaces", list).await,
            NamespacesVerb::Get(it) => self.get(&it).await,
            NamespacesVerb::Create(body) => self.create("namespaces", &body).await,
            NamespacesVerb::Update(it) => self.update(&it).await,
            NamespacesVerb::Delete(it) => self.delete(&it).await,
        }
    }

    async fn managers(&self, verb: ManagersVerb) -> Result<(), Failure> {
        match verb {
            ManagersVerb::List(list) => self.list(&self.own().await?, list).await,
            ManagersVerb::Get(it) => self.get(&it).await,
            ManagersVerb::Create(it) => {
                let body = it.choice.add_to(it.body);
                self.create(&self.own().await?, &body).await
            }
            ManagersVerb::Update(mut it) => {
                it.update.body = it.choice.add_to(it.update.body);
                self.update(&it.update).await
            }
            ManagersVerb::Delete(it) => self.delete(&it).await,
            ManagersVerb::Apply(it) => {
                let manager = self.act(&it, "apply", &json!({})).await?;
                self.show(manager)
            }
            ManagersVerb::Preview(it) => self.preview(&it).await,
            ManagersVerb::Backfill(it) => self.backfill(&it).await,
        }
    }

    async fn connections(&self, verb: ConnectionsVerb) -> Result<(), Failure> {
        match verb {
            ConnectionsVerb::List(list) => self.list(&self.own().await?, list).await,
            ConnectionsVerb::Get(it) => self.get(&it).await,
            ConnectionsVerb::Create(body) => self.create(&self.own().await?, &body).await,
            ConnectionsVerb::Update(it) => self.update(&it).await,
            ConnectionsVerb::Delete(it) => self.delete(&it).await,
            ConnectionsVerb::Test(it) => {
                let outcome = self.act(&it, "test", &json!({})).await?;
                let sent = outcome["sent"] == true;
                let ok = outcome["ok"] == true;
                self.show(outcome)?;
                if sent && !ok {
                    let words = "the receiver did not acknowledge it with a 2xx status in time";
                    return Err(Failure::Local(words.to_owned()));
                }
                Ok(())
            }
            ConnectionsVerb::Enable(it) => {
                let connection = self.act(&it, "enable", &json!({})).await?;
                self.show(connection)
            }
            ConnectionsVerb::Replay(it) => self.replay(&it).await,
        }
    }

    async fn scans(&self, verb: ScansVerb) -> Result<(), Failure> {
        match verb {
            ScansVerb::List { list, manager } => {
                let parent = self.parent("managers", manager.as_deref()).await?;
                self.list(&format!("{parent}/scans"), list).await
            }
            ScansVerb::Get(it) => self.get(&it).await,
            ScansVerb::Update(it) => self.update(&it).await,
        }
    }

    async fn deliveries(&self, verb: DeliveriesVerb) -> Result<(), Failure> {
        match verb {
            DeliveriesVerb::List { list, connection } => {
                let parent = self.parent("connections", connection.as_deref()).await?;
                self.list(&format!("{parent}/deliveries"), list).await
            }
            DeliveriesVerb::Get(it) => self.get(&it).await,
            DeliveriesVerb::Retry(it) => {
                let delivery = self.act(&it, "retry", &json!({})).await?;
                self.show(delivery)
            }
        }
    }

    async fn list(&self, collection: &str, list: List) -> Result<(), Failure> {
        let parameters = [("filter", &list.filter), ("orderBy", &list.order_by)];
        let parameters = parameters
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)));
        let given = Given {
            parameters: parameters.collect(),
            ..Given::default()
        };
        let mut left = list.limit.map_or(usize::MAX, usize::from);
        let query = Query {
            filter: list.filter,
            order_by: list.order_by,
            page_size: u32::try_from(left).ok().map(|size| size.min(100)),
            page_token: None,
        };
        let mut pages = self.client.pages(collection, query);
        let mut printer = Printer::new(self.form, self.columns, &list.columns);
        loop {
            let page = pages.next().await;
            let page = page.map_err(|error| Failure::from(error).with(given.clone()))?;
            let Some(mut items) = page else { break };
            items.truncate(left);
            left -= items.len();
            printer.page(items)?;
            if left == 0 {
                break;
            }
        }
        printer.finish()
    }

    async fn get(&self, it: &Named) -> Result<(), Failure> {
        let found = self.client.get(&self.name(it).await?).await?;
        self.show(found)
    }

    async fn create(&self, collection: &str, body: &Body) -> Result<(), Failure> {
        let body = body.read()?;
        let made = self.client.create(collection, &body).await;
        self.show(made.map_err(|error| Failure::from(error).with(Given::body(&body)))?)
    }

    async fn update(&self, it: &Update) -> Result<(), Failure> {
        let body = it.body.read()?;
        let change = Change {
            body: &body,
            mask: it.update_mask.as_deref(),
        };
        let changed = self
            .client
            .update(&self.name(&it.named).await?, &change)
            .await;
        let mut given = Given::body(&body);
        given
            .parameters
            .extend(it.update_mask.clone().map(|mask| ("updateMask", mask)));
        self.show(changed.map_err(|error| Failure::from(error).with(given))?)
    }

    async fn delete(&self, it: &Delete) -> Result<(), Failure> {
        let name = self.name(&it.named).await?;
        self.client.delete(&name, it.force).await?;
        eprintln!("deleted {name}");
        Ok(())
    }

    async fn act(&self, it: &Named, verb: &str, body: &Value) -> Result<Value, Failure> {
        let done = self.client.act(&self.name(it).await?, verb, body).await;
        done.map_err(|error| Failure::from(error).with(Given::body(body)))
    }

    async fn preview(&self, it: &Preview) -> Result<(), Failure> {
        let mut body = match it.body.is_given() {
            true => it.body.read()?,
            false => Value::Object(Map::new()),
        };
        if let Some(recent) = it.recent {
            body["recent"] = recent.into();
        }
        if !it.urls.is_empty() {
            body["urls"] = it.urls.clone().into();
        }
        if body.as_object().is_none_or(Map::is_empty) {
            return Err(Failure::usage(
                "no posts: give --recent N, --post-url URL, or --file FILE with `posts`",
            ));
        }
        let mut answer = self.act(&it.named, "preview", &body).await?;
        let Value::Array(mut results) = answer["results"].take() else {
            return Ok(());
        };
        // For given posts, the answer only contains the decisions, so the posts are added.
        if let Some(posts) = body["posts"].as_array() {
            for (result, post) in results.iter_mut().zip(posts) {
                if result["post"].is_null() {
                    result["post"] = post.clone();
                }
            }
        }
        self.print(RESULTS, results)
    }

    async fn backfill(&self, it: &Backfill) -> Result<(), Failure> {
        let start = Timestamp::now().minus(it.since);
        let body = json!({"startTime": start.to_string(), "notify": it.notify});
        let mut answer = self.act(&it.named, "backfill", &body).await?;
        match answer["feeds"].take() {
            Value::Array(feeds) => self.print(FEEDS, feeds),
            _ => Ok(()),
        }
    }

    async fn replay(&self, it: &Replay) -> Result<(), Failure> {
        let now = Timestamp::now();
        let mut body = json!({"startTime": now.minus(it.since).to_string()});
        if let Some(until) = it.until {
            body["endTime"] = now.minus(until).to_string().into();
        }
        if !it.states.is_empty() {
            body["states"] = it.states.clone().into();
        }
        let replay = self.act(&it.named, "replay", &body).await?;
        self.show(replay)
    }

    fn print(&self, columns: Columns, items: Vec<Value>) -> Result<(), Failure> {
        let mut printer = Printer::new(self.form, columns, &[]);
        printer.page(items)?;
        printer.finish()
    }

    fn show(&self, item: Value) -> Result<(), Failure> {
        output::one(self.form, self.columns, item)
    }

    /// Returns the collection of this kind in the selected Namespace.
    async fn own(&self) -> Result<String, Failure> {
        let namespace = namespace(&self.client, self.namespace.as_deref()).await?;
        Ok(format!("{namespace}/{}", self.collection))
    }

    /// Returns the given resource, or all of them.
    async fn parent(&self, collection: &str, given: Option<&str>) -> Result<String, Failure> {
        let given = given.unwrap_or("-");
        named(&self.client, self.namespace.as_deref(), collection, given).await
    }

    async fn name(&self, it: &Named) -> Result<String, Failure> {
        let given = it.name.as_str();
        if self.collection == "namespaces" {
            return namespace(&self.client, Some(given)).await;
        }
        if !given.contains('/') && matches!(self.collection, "scans" | "deliveries") {
            return Err(Failure::usage(format!(
                "`{given}` is not a full name: namespaces/…/{}/…",
                self.collection
            )));
        }
        named(
            &self.client,
            self.namespace.as_deref(),
            self.collection,
            given,
        )
        .await
    }
}
