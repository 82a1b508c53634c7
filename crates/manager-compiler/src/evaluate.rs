//! Scores posts offline against customers' pages: how well compiling and matching decide together.
//!
//! Reads the benchmark's format: customers as `DIR/*.json`, with pages relative to the folder above,
//! and posts as JSON lines, gzipped or not. No database and no network.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use domain::Focus;
use flate2::read::GzDecoder;
use matching::{Plan, PostText};
use serde::{Deserialize, Serialize};
use url::Url;

use crate::compile::{self, CompileFailure, FetchedPage};

/// What is said of a post for a customer and focus.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    pub customer: String,
    pub focus: Focus,
    pub post_id: String,
    pub score: f64,
    pub value: bool,
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
    #[error("customer `{customer}` cannot be compiled")]
    Compile {
        customer: String,
        #[source]
        source: CompileFailure,
    },
    #[error("the instructions of customer `{customer}` cannot be executed")]
    Plan {
        customer: String,
        #[source]
        source: matching::PlanError,
    },
}

#[derive(Debug, Clone, Deserialize)]
struct Customer {
    id: String,
    pages: Vec<PathBuf>,
    #[serde(default)]
    competitors: Vec<String>,
    foci: Vec<Focus>,
}

/// `channel` and `source` are not read: they would give the answer away.
#[derive(Debug, Deserialize)]
struct BenchPost {
    id: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    text: String,
}

/// A plan for each focus of each customer, in the order of their ids.
#[derive(Debug)]
pub struct Plans(Vec<(String, Focus, Plan)>);

impl Plans {
    /// Compiles all customers of a folder, for one focus or for all of theirs.
    ///
    /// # Errors
    /// The first file that cannot be read, or customer that cannot be compiled.
    pub fn compile(customers: &Path, focus: Option<Focus>) -> Result<Self, EvaluateError> {
        let mut plans = Vec::new();
        for (customer, pages) in load(customers)? {
            let foci = customer.foci.iter().copied();
            for focus in foci.filter(|own| focus.is_none_or(|focus| focus == *own)) {
                let instructions =
                    compile::compile(&pages, focus, &customer.competitors, "FORUM", &[]).map_err(
                        |source| EvaluateError::Compile {
                            customer: customer.id.clone(),
                            source,
                        },
                    )?;
                let plan = Plan::compile(&instructions).map_err(|source| EvaluateError::Plan {
                    customer: customer.id.clone(),
                    source,
                })?;
                plans.push((customer.id.clone(), focus, plan));
            }
        }
        Ok(Self(plans))
    }

    /// Decides on one post for each plan.
    pub fn decide(&self, id: &str, title: &str, text: &str) -> impl Iterator<Item = Prediction> {
        let post = PostText::new(Some(title).filter(|t| !t.is_empty()), Some(text));
        self.0.iter().map(move |(customer, focus, plan)| {
            let decision = matching::evaluate(plan, &post, None);
            Prediction {
                customer: customer.clone(),
                focus: *focus,
                post_id: id.to_owned(),
                score: decision.score,
                value: decision.value,
            }
        })
    }
}

impl IntoIterator for Plans {
    type Item = (String, Focus, Plan);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Compiles each customer and scores each post, handing predictions to `sink` in the order of posts.
///
/// # Errors
/// What cannot be read or compiled, or what `sink` answers.
pub fn run(
    customers: &Path,
    posts: &Path,
    focus: Option<Focus>,
    mut sink: impl FnMut(Prediction) -> io::Result<()>,
) -> Result<(), EvaluateError> {
    let plans = Plans::compile(customers, focus)?;
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
        for prediction in plans.decide(&post.id, &post.title, &post.text) {
            sink(prediction).map_err(|source| EvaluateError::Read {
                path: PathBuf::from("the output"),
                source,
            })?;
        }
    }
    Ok(())
}

/// The customers of a folder with their pages, by file name.
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
        let mut pages = Vec::new();
        for page in &customer.pages {
            let path = folder.join("..").join(page);
            pages.push(FetchedPage {
                url: page_url(page),
                content_type: None,
                body: fs::read(&path).map_err(read(&path))?,
            });
        }
        customers.push((customer, pages));
    }
    Ok(customers)
}

/// Pages of the benchmark have no address; a literal one has no name that could be taken for theirs.
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
