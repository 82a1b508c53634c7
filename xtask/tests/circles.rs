//! Checks that the files of a crate do not import each other in a circle.
//!
//! A file may import from the files that it is below (`super::`), which it is a part of.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Attribute, File, Item, ItemUse, UseTree, Visibility,
    visit::{self, Visit},
};

/// Names on the way to a module or an item; empty for the root of a crate.
type Names = Vec<String>;

/// Imports of one file.
#[derive(Default)]
struct Imports {
    /// Paths in the code.
    paths: BTreeSet<Names>,
    /// Paths of imported names.
    names: BTreeMap<String, Names>,
    /// Names of `names` that others can import from this file.
    exported: BTreeSet<String>,
}

impl Imports {
    fn add(&mut self, before: &[String], tree: &UseTree, is_exported: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (name, path) = match tree {
            UseTree::Path(path) => return self.add(&with(&path.ident), &path.tree, is_exported),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add(before, tree, is_exported);
                }
                return;
            }
            UseTree::Glob(_) => {
                self.paths.insert(before.to_vec());
                return;
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned(), before.to_vec())
            }
            UseTree::Name(name) => (Some(name.ident.to_string()), with(&name.ident)),
            UseTree::Rename(rename) => (Some(rename.rename.to_string()), with(&rename.ident)),
        };
        let name = name.unwrap();
        if is_exported {
            self.exported.insert(name.clone());
        } else {
            self.paths.insert(path.clone());
        }
        self.names.insert(name, path);
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Mod(one) => &one.attrs,
            Item::Fn(one) => &one.attrs,
            Item::Impl(one) => &one.attrs,
            Item::Use(one) => &one.attrs,
            _ => &Vec::new(),
        };
        if !attributes.iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_exported = !matches!(item.vis, Visibility::Inherited);
        self.add(&[], &item.tree, is_exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|name| name.ident.to_string());
        self.paths.insert(names.collect());
        visit::visit_path(self, path);
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
        && attribute
            .meta
            .require_list()
            .is_ok_and(|list| list.tokens.to_string().contains("test"))
}

/// The modules of a crate that are files.
struct Modules(BTreeMap<Names, Imports>);

impl Modules {
    fn read(crate_folder: &Path) -> Self {
        let source = crate_folder.join("src");
        let mut files = Vec::new();
        collect(&source, &mut files);
        let mut modules = BTreeMap::new();
        for path in files {
            let relative = path.strip_prefix(&source).unwrap().with_extension("");
            let mut names: Names = relative
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            match names.last().unwrap().as_str() {
                "tests" => continue,
                "mod" => drop(names.pop()),
                "lib" => names.clear(),
                "main" if source.join("lib.rs").exists() => continue,
                "main" => names.clear(),
                _ => {}
            }
            let file: File = syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap();
            let mut imports = Imports::default();
            imports.visit_file(&file);
            modules.insert(names, imports);
        }
        Self(modules)
    }

    /// The file that declares what `path` names in `module`; `None` for another crate's.
    fn declaring(&self, module: &[String], path: &[String], depth: usize) -> Option<Names> {
        let (first, mut rest) = path.split_first()?;
        let below = |name: &String| [module, std::slice::from_ref(name)].concat();
        let mut at = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => {
                let mut parent = module.split_last()?.1;
                while rest.first().is_some_and(|name| name == "super") {
                    (parent, rest) = (parent.split_last()?.1, &rest[1..]);
                }
                parent.to_vec()
            }
            _ if self.0.contains_key(&below(first)) => below(first),
            _ => {
                let imported = self.0[module].names.get(first)?;
                let is_own_crate = imported.first() != Some(first);
                let path = [imported, rest].concat();
                return (is_own_crate && depth > 0)
                    .then(|| self.declaring(module, &path, depth - 1))?;
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let below = [&at[..], std::slice::from_ref(name)].concat();
            if !self.0.contains_key(&below) {
                break;
            }
            (at, rest) = (below, after);
        }
        let imports = self.0.get(&at)?;
        match rest.first() {
            Some(name) if imports.exported.contains(name) && depth > 0 => {
                self.declaring(&at, rest, depth - 1).or(Some(at))
            }
            _ => Some(at),
        }
    }

    /// For each file, the files that it imports from, except those that it is below.
    fn graph(&self) -> BTreeMap<&Names, BTreeSet<Names>> {
        let mut graph = BTreeMap::new();
        for (module, imports) in &self.0 {
            let declaring = imports.paths.iter();
            let declaring = declaring.filter_map(|path| self.declaring(module, path, 8));
            graph.insert(
                module,
                declaring.filter(|one| !module.starts_with(one)).collect(),
            );
        }
        graph
    }

    /// Returns the files of a circle, if there is one.
    fn circle(&self) -> Option<Vec<String>> {
        let mut graph = self.graph();
        // Removes files that import from no other file that is left, until none is removed.
        loop {
            let before = graph.len();
            let left: BTreeSet<Names> = graph.keys().map(|name| (*name).clone()).collect();
            graph.retain(|_, imported| imported.iter().any(|one| left.contains(one)));
            if graph.len() == before {
                break;
            }
        }
        let mut way = vec![*graph.keys().next()?];
        loop {
            let imported = &graph[way.last()?];
            let (next, _) = graph.iter().find(|(name, _)| imported.contains(**name))?;
            if let Some(start) = way.iter().position(|name| name == next) {
                let circle = way[start..].iter();
                return Some(circle.map(|name| name.join("::")).collect());
            }
            way.push(next);
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn files_do_not_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        if let Some(circle) = Modules::read(&folder).circle() {
            found.push(format!("{}: {}", folder.display(), circle.join(" -> ")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn circle_is_found_through_re_exports() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("src");
    fs::create_dir_all(source.join("one")).unwrap();
    let write = |name: &str, text: &str| fs::write(source.join(name), text).unwrap();
    write("lib.rs", "mod one; mod two; pub use two::Two;");
    write("one.rs", "mod part; use crate::Two;");
    write("one/part.rs", "use super::One; use crate::two;");
    write("two.rs", "pub struct Two;");
    assert_eq!(Modules::read(folder.path()).circle(), None);
    write("two.rs", "pub struct Two(crate::one::One);");
    let circle = Modules::read(folder.path()).circle().unwrap();
    assert_eq!(circle, ["one", "two"]);
}
