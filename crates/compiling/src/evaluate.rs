//! Scores posts offline against customers' pages: measures how well compiling and matching decide together.
//!
//! Reads the benchmark's format: customers as `DIR/*.json`, with pages relative to the parent folder, and posts as JSON
//! lines, gzipped or not. Uses no database and no network. If a page has an address, its domain counts among the
//! customer's names. A customer that cannot be compiled is reported, and the others are scored.

mod reading;

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use domain::{Focus, Instructions, Sensitivity, scan::ReaderOutcome};
use flate2::read::GzDecoder;
use matching::{Plan, PostText, Reason};
use reader::Reader;
use serde::{Deserialize, Serialize, de::Error as _};
use url::Url;

use crate::compile::{self, CompileFailure, FetchedPage};
use reading::Reading;

/// Decision on a post for a customer and focus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub customer: String,
    pub focus: Focus,
    pub post_id: String,
    pub score: f64,
    pub value: bool,
    /// Rule that decided before the reader.
    #[serde(skip)]
    pub reason: Reason,
    /// With a reader: whether the score is the reader's, or why not. Absent for posts that are no candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader: Option<ReaderOutcome>,
}

#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("`{}` is not in the benchmark's format", path.display())]
    Format {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
}

/// A customer that is not scored for a focus.
#[derive(Debug, thiserror::Error)]
#[error("customer `{customer}` cannot be compiled for {}: {reason}", focus.as_str())]
pub struct SkippedCustomer {
    pub customer: String,
    pub focus: Focus,
    pub reason: SkipReason,
}

/// Reason why a customer is not scored.
#[derive(Debug, thiserror::Error)]
pub enum SkipReason {
    #[error(transparent)]
    Compile(#[from] CompileFailure),
    /// The instructions cannot be executed.
    #[error(transparent)]
    Plan(#[from] matching::PlanError),
}

#[derive(Debug, Clone, Deserialize)]
struct Customer {
    id: String,
    pages: Vec<PageEntry>,
    /// Addresses of the pages, in the same order.
    #[serde(default)]
    urls: Vec<Option<Url>>,
    #[serde(default)]
    competitors: Vec<String>,
    foci: Vec<Focus>,
}

/// A page on disk, with its address if it is known.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum PageEntry {
    Path(PathBuf),
    Addressed {
        #[serde(alias = "file")]
        path: PathBuf,
        url: Option<Url>,
    },
}

impl PageEntry {
    fn path(&self) -> &Path {
        match self {
            Self::Path(path) | Self::Addressed { path, .. } => path,
        }
    }

    fn url(&self) -> Option<&Url> {
        match self {
            Self::Path(_) => None,
            Self::Addressed { url, .. } => url.as_ref(),
        }
    }
}

/// `channel` and `source` are not read: they would reveal the answer.
#[derive(Debug, Deserialize)]
struct BenchPost {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
}

/// One plan per focus of each customer, in the order of their ids.
#[derive(Debug, Default)]
pub struct Plans {
    plans: Vec<(String, Focus, Plan)>,
    /// The instructions of the plans, in the same order.
    instructions: Vec<Instructions>,
    skipped: Vec<SkippedCustomer>,
}

impl Plans {
    /// Compiles all customers of a folder, for one focus or for all of theirs.
    ///
    /// # Errors
    /// Returns an error for the first file that cannot be read. A customer that cannot be compiled is not an error: see
    /// [`Plans::skipped`].
    pub fn compile(
        customers: &Path,
        focus: Option<Focus>,
        sensitivity: Sensitivity,
    ) -> Result<Self, EvaluateError> {
        let mut all = Self::default();
        for (customer, pages) in load(customers)? {
            let foci = customer.foci.iter().copied();
            for focus in foci.filter(|own| focus.is_none_or(|focus| focus == *own)) {
                let id = customer.id.clone();
                match plan(&customer, &pages, focus, sensitivity) {
                    Ok((instructions, plan)) => {
                        all.plans.push((id, focus, plan));
                        all.instructions.push(instructions);
                    }
                    Err(reason) => all.skipped.push(SkippedCustomer {
                        customer: id,
                        focus,
                        reason,
                    }),
                }
            }
        }
        Ok(all)
    }

    /// Returns the customers that cannot be compiled and are not scored.
    pub fn skipped(&self) -> &[SkippedCustomer] {
        &self.skipped
    }

    /// Decides on one post for each plan.
    pub fn decide(&self, id: &str, post: &PostText) -> impl Iterator<Item = Prediction> {
        self.plans.iter().map(move |(customer, focus, plan)| {
            let decision = matching::evaluate(plan, post, None);
            Prediction {
                customer: customer.clone(),
                focus: *focus,
                post_id: id.to_owned(),
                score: decision.score,
                value: decision.value,
                reason: decision.reason,
                reader: None,
            }
        })
    }
}

impl IntoIterator for Plans {
    type Item = (String, Focus, Plan);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.plans.into_iter()
    }
}

fn plan(
    customer: &Customer,
    pages: &[FetchedPage],
    focus: Focus,
    sensitivity: Sensitivity,
) -> Result<(Instructions, Plan), SkipReason> {
    let competitors = &customer.competitors;
    let instructions = compile::compile(pages, focus, sensitivity, competitors, "FORUM", &[])?;
    let plan = Plan::compile(&instructions)?;
    Ok((instructions, plan))
}

fn post_text(title: &str, text: &str) -> PostText {
    PostText::new(Some(title).filter(|t| !t.is_empty()), Some(text))
}

/// Compiles each customer and scores each post, with the reader if there is one. Passes predictions to `sink` in the order
/// of posts. Returns the customers that cannot be compiled.
///
/// # Errors
/// Returns an error if a file cannot be read, or if `sink` fails.
pub fn run(
    customers: &Path,
    posts: &Path,
    focus: Option<Focus>,
    sensitivity: Sensitivity,
    reader: Option<&Reader>,
    mut sink: impl FnMut(Prediction) -> io::Result<()>,
) -> Result<Vec<SkippedCustomer>, EvaluateError> {
    let plans = Plans::compile(customers, focus, sensitivity)?;
    let reading = reader.map(|reader| Reading::new(reader, &plans));
    let read = |source| EvaluateError::Read {
        path: posts.to_owned(),
        source,
    };
    for line in lines(posts).map_err(read)? {
        let line = line.map_err(read)?;
        if line.trim().is_empty() {
            continue;
        }
        let post: BenchPost =
            serde_json::from_str(&line).map_err(|source| EvaluateError::Format {
                path: posts.to_owned(),
                source,
            })?;
        let text = post_text(&post.title, &post.text);
        let mut predictions: Vec<_> = plans.decide(&post.id, &text).collect();
        if let Some(reading) = &reading {
            reading.judge(&plans, &mut predictions, &post.title, &text, &post.text);
        }
        for prediction in predictions {
            sink(prediction).map_err(|source| EvaluateError::Read {
                path: PathBuf::from("the output"),
                source,
            })?;
        }
    }
    Ok(plans.skipped)
}

/// Returns instructions for each focus of each customer of a folder that can be compiled, in the order of their ids.
///
/// # Errors
/// Returns an error for the first file that cannot be read.
pub fn instructions(customers: &Path) -> Result<Vec<(String, Focus, Instructions)>, EvaluateError> {
    let mut all = Vec::new();
    for (customer, pages) in load(customers)? {
        for &focus in &customer.foci {
            let compiled = compile::compile(
                &pages,
                focus,
                Sensitivity::Balanced,
                &customer.competitors,
                "FORUM",
                &[],
            );
            if let Ok(instructions) = compiled {
                all.push((customer.id.clone(), focus, instructions));
            }
        }
    }
    Ok(all)
}

/// Reads the posts of a file: id, title and text.
///
/// # Errors
/// Returns an error if the file or a line cannot be read.
pub fn posts(
    path: &Path,
) -> Result<impl Iterator<Item = Result<(String, String, String), EvaluateError>>, EvaluateError> {
    let path = path.to_owned();
    let read = |path: &Path| {
        let path = path.to_owned();
        move |source| EvaluateError::Read { path, source }
    };
    let lines = lines(&path).map_err(read(&path))?;
    let full = lines.filter(|line| line.as_ref().map_or(true, |line| !line.trim().is_empty()));
    Ok(full.map(move |line| {
        let line = line.map_err(read(&path))?;
        let post: BenchPost =
            serde_json::from_str(&line).map_err(|source| EvaluateError::Format {
                path: path.clone(),
                source,
            })?;
        Ok((post.id, post.title, post.text))
    }))
}

/// Reads the customers of a folder with their pages, by file name.
fn load(folder: &Path) -> Result<Vec<(Customer, Vec<FetchedPage>)>, EvaluateError> {
    let read = |path: &Path| {
        let path = path.to_owned();
        move |source| EvaluateError::Read { path, source }
    };
    let entries = fs::read_dir(folder).map_err(read(folder))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()
        .map_err(read(folder))?;
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();

    let mut customers = Vec::new();
    for path in files {
        let text = fs::read(&path).map_err(read(&path))?;
        let customer: Customer =
            serde_json::from_slice(&text).map_err(|source| EvaluateError::Format {
                path: path.clone(),
                source,
            })?;
        if customer.urls.len() > customer.pages.len() {
            return Err(EvaluateError::Format {
                path,
                source: serde_json::Error::custom("`urls` has more entries than `pages`"),
            });
        }
        let mut pages = Vec::new();
        for (at, page) in customer.pages.iter().enumerate() {
            let path = folder.join("..").join(page.path());
            let url = page
                .url()
                .or_else(|| customer.urls.get(at).and_then(Option::as_ref));
            pages.push(FetchedPage {
                url: url.cloned().unwrap_or_else(|| page_url(page.path())),
                content_type: None,
                body: fs::read(&path).map_err(read(&path))?,
            });
        }
        customers.push((customer, pages));
    }
    Ok(customers)
}

/// Returns the address for a page without one: an IP address, which contains no name that could count as the
/// customer's.
fn page_url(page: &Path) -> Url {
    let mut url = Url::parse("http://192.0.2.1/").expect("the address is well-formed");
    url.set_path(&page.to_string_lossy());
    url
}

fn lines(path: &Path) -> io::Result<io::Lines<BufReader<Box<dyn Read>>>> {
    let file = File::open(path)?;
    let mut file = BufReader::new(file);
    let gzipped = file.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let reader: Box<dyn Read> = if gzipped {
        Box::new(GzDecoder::new(file))
    } else {
        Box::new(file)
    };
    Ok(BufReader::new(reader).lines())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{Plans, run};
    use domain::{Sensitivity, scan::ReaderOutcome};
    use reader::Reader;

    const PAGE: &str =
        "<title>Lever espresso machines</title><p>Espresso machines, built by hand in Leith.";

    /// Creates a folder with customers, whose pages are `good.html` and `empty.html`.
    fn folder(name: &str, customers: &[(&str, &str)]) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("evaluate-{}-{name}", std::process::id()));
        fs::create_dir_all(folder.join("customers")).unwrap();
        fs::write(folder.join("good.html"), PAGE).unwrap();
        fs::write(folder.join("empty.html"), "<title></title>").unwrap();
        fs::write(
            folder.join("posts.jsonl"),
            r#"{"id":"1","text":"an espresso machine, please"}"#,
        )
        .unwrap();
        for (id, fields) in customers {
            let text = format!(r#"{{"id":"{id}","foci":["SALES"],{fields}}}"#);
            fs::write(folder.join(format!("customers/{id}.json")), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_customer_that_cannot_be_compiled_is_reported_and_the_others_are_scored() {
        let folder = folder(
            "skipped",
            &[
                ("a", r#""pages":["empty.html"]"#),
                ("b", r#""pages":["good.html"]"#),
            ],
        );
        let mut scored = Vec::new();
        let skipped = run(
            &folder.join("customers"),
            &folder.join("posts.jsonl"),
            None,
            Sensitivity::Balanced,
            None,
            |prediction| {
                scored.push(prediction.customer);
                Ok(())
            },
        );
        fs::remove_dir_all(&folder).unwrap();
        let skipped: Vec<_> = skipped.unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            skipped,
            ["customer `a` cannot be compiled for SALES: no usable content on any url"]
        );
        assert_eq!(scored, ["b"]);
    }

    #[test]
    fn the_reader_scores_candidates_by_what_the_customer_sells() {
        let folder = folder("reader", &[("b", r#""pages":["good.html"]"#)]);
        let post = |id: &str, title: &str| {
            serde_json::json!({"id": id, "title": title, "text": "I have 300 to spend."})
                .to_string()
        };
        let posts = [
            post("own", "Which espresso machine should I buy?"),
            post(
                "other",
                "Which monitor should I buy? It stands next to the espresso machine.",
            ),
            post("unrelated", "A walk in the park"),
        ];
        fs::write(folder.join("posts.jsonl"), posts.join("\n")).unwrap();
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../reader/model");
        let reader = Reader::in_folder(Path::new(model)).unwrap();
        let mut scores = Vec::new();
        for reader in [None, Some(&reader)] {
            run(
                &folder.join("customers"),
                &folder.join("posts.jsonl"),
                None,
                Sensitivity::Balanced,
                reader,
                |prediction| {
                    scores.push((prediction.score, prediction.reader));
                    Ok(())
                },
            )
            .unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
        let judged = Some(ReaderOutcome::Judged);
        let [own, other, unrelated, read_own, read_other, read_unrelated] = scores[..] else {
            panic!("{scores:?}");
        };
        assert!(
            [own.1, other.1, unrelated.1, read_unrelated.1] == [None; 4],
            "{scores:?}"
        );
        assert!(read_own.1 == judged && read_other.1 == judged, "{scores:?}");
        assert_eq!(unrelated, read_unrelated);
        let contrast = |own: f64, other: f64| own / other.max(1e-3);
        assert!(
            contrast(read_own.0, read_other.0) > 1.5 * contrast(own.0, other.0),
            "{scores:?}"
        );
    }

    #[test]
    fn pages_may_have_an_address() {
        let url = "https://www.brewforge.example/";
        let folder = folder(
            "addresses",
            &[
                ("a", r#""pages":["good.html"]"#),
                ("b", &format!(r#""pages":["good.html"],"urls":["{url}"]"#)),
                (
                    "c",
                    &format!(r#""pages":[{{"path":"good.html","url":"{url}"}}]"#),
                ),
                (
                    "d",
                    &format!(r#""pages":[{{"file":"good.html","url":"{url}"}},"good.html"]"#),
                ),
            ],
        );
        let customers = super::load(&folder.join("customers")).unwrap();
        let plans = Plans::compile(&folder.join("customers"), None, Sensitivity::Balanced).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(plans.skipped().len(), 0);
        let urls: Vec<_> = customers
            .iter()
            .map(|(_, pages)| pages[0].url.as_str())
            .collect();
        assert_eq!(urls, ["http://192.0.2.1/good.html", url, url, url]);
    }

    #[test]
    fn more_addresses_than_pages_are_refused() {
        let folder = folder(
            "too-many",
            &[(
                "a",
                r#""pages":["good.html"],"urls":[null,"https://x.example/"]"#,
            )],
        );
        let answer = Plans::compile(&folder.join("customers"), None, Sensitivity::Balanced);
        fs::remove_dir_all(&folder).unwrap();
        assert!(answer.is_err());
    }
}
