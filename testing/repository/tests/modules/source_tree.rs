//! The modules of one crate, read from its sources, and which of them name each other.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, Lit, Meta, Token, UseTree};

pub(crate) struct SourceTree {
    modules: Vec<Module>,
}

#[derive(Default)]
struct Module {
    name: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// What the module defines, except its modules.
    items: HashSet<String>,
    imports: Vec<Import>,
    /// The paths in its code.
    paths: Vec<Named>,
}

struct Import {
    /// The name in this module; `None` for a glob.
    name: Option<String>,
    path: Vec<String>,
}

struct Named {
    path: Vec<String>,
    line: Line,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    file: PathBuf,
    number: usize,
}

/// What a path leads to: a module, or an item of a module.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    ItemOf(usize),
}

/// Modules that each use each other, directly or through others of them.
pub(crate) struct Circle {
    edges: Vec<Edge>,
}

struct Edge {
    user: String,
    used: String,
    /// The path in the code, at the first line that has this edge.
    path: String,
    line: Line,
    further: usize,
}

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for Edge { user, used, path, line, further } in &self.edges {
            let Line { file, number } = line;
            write!(f, "  {user} -> {used}: `{path}` at {}:{number}", file.display())?;
            if *further > 0 {
                write!(f, " and {further} more")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl SourceTree {
    /// Reads the crate whose root is this file.
    pub(crate) fn read(root: &Path) -> Self {
        let mut reader = Reader {
            modules: vec![Module { name: "crate".to_owned(), ..Module::default() }],
            current: 0,
            file: PathBuf::new(),
            folder: PathBuf::new(),
            inline: PathBuf::new(),
        };
        reader.read_file(root, root.parent().unwrap().to_owned());
        Self { modules: reader.modules }
    }

    /// The circles among the children of each module.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let edges = self.edges();
        (0..self.modules.len()).flat_map(|module| self.circles_in(module, &edges)).collect()
    }

    fn circles_in(&self, parent: usize, edges: &Edges) -> Vec<Circle> {
        let used = |user: usize| edges.keys().filter(move |edge| edge.0 == user).map(|edge| edge.1);
        let reachable = |from: usize| {
            let mut reached = BTreeSet::new();
            let mut next: Vec<_> = used(from).collect();
            while let Some(module) = next.pop() {
                if reached.insert(module) {
                    next.extend(used(module));
                }
            }
            reached
        };
        let children = self.modules[parent].children.values();
        let reached: BTreeMap<usize, _> =
            children.map(|child| (*child, reachable(*child))).collect();
        let mut circles = BTreeSet::new();
        for (child, others) in &reached {
            if others.contains(child) {
                let is_mutual = |other: &&usize| reached[*other].contains(child);
                circles.insert(others.iter().filter(is_mutual).copied().collect::<BTreeSet<_>>());
            }
        }
        let circle = |circle: BTreeSet<usize>| {
            let is_inside =
                |(user, used): &(usize, usize)| circle.contains(user) && circle.contains(used);
            let edges = edges.iter().filter(|(edge, _)| is_inside(edge));
            Circle { edges: edges.map(|(edge, named)| self.edge(*edge, named)).collect() }
        };
        circles.into_iter().map(circle).collect()
    }

    fn edge(&self, (from, to): (usize, usize), named: &[&Named]) -> Edge {
        let first = named.iter().min_by_key(|named| &named.line).unwrap();
        Edge {
            user: self.modules[from].name.clone(),
            used: self.modules[to].name.clone(),
            path: first.path.join("::"),
            line: first.line.clone(),
            further: named.len() - 1,
        }
    }

    fn edges(&self) -> Edges<'_> {
        let mut edges = Edges::new();
        for (user, module) in self.modules.iter().enumerate() {
            for named in &module.paths {
                let target = self.resolve(user, &named.path, &mut HashSet::new());
                let Some(Target::Module(used) | Target::ItemOf(used)) = target else { continue };
                if let Some(edge) = self.where_they_differ(user, used) {
                    edges.entry(edge).or_default().push(named);
                }
            }
        }
        edges
    }

    /// The children of the innermost module that contains both, if neither contains the other.
    fn where_they_differ(&self, one: usize, other: usize) -> Option<(usize, usize)> {
        self.ancestors(one).into_iter().zip(self.ancestors(other)).find(|(one, other)| one != other)
    }

    /// From the crate's root to the module.
    fn ancestors(&self, module: usize) -> Vec<usize> {
        let parent = |module: &usize| self.modules[*module].parent;
        let mut ancestors: Vec<_> = std::iter::successors(Some(module), parent).collect();
        ancestors.reverse();
        ancestors
    }

    /// What a path in a module leads to, if this crate defines it. `visited` ends imports in circles.
    fn resolve(
        &self,
        module: usize,
        path: &[String],
        visited: &mut HashSet<(usize, String, bool)>,
    ) -> Option<Target> {
        let mut target = Target::Module(module);
        for (index, segment) in path.iter().enumerate() {
            let Target::Module(module) = target else { break };
            let is_last = index + 1 == path.len();
            target = match &**segment {
                "crate" => Target::Module(0),
                "self" => target,
                "super" => Target::Module(self.modules[module].parent?),
                name => self.look_up(module, name, is_last, visited)?,
            };
        }
        Some(target)
    }

    /// What a name means in a module. A module and a function may have the same name: at the end of a
    /// path the function is meant, and before it the module.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        is_last: bool,
        visited: &mut HashSet<(usize, String, bool)>,
    ) -> Option<Target> {
        if !visited.insert((module, name.to_owned(), is_last)) {
            return None;
        }
        let Module { items, children, imports, .. } = &self.modules[module];
        let child = children.get(name).map(|child| Target::Module(*child));
        if is_last && items.contains(name) {
            return Some(Target::ItemOf(module));
        }
        if !is_last && child.is_some() {
            return child;
        }
        let import = imports.iter().find(|import| import.name.as_deref() == Some(name));
        let imported = import.and_then(|import| self.resolve(module, &import.path, visited));
        let item = items.contains(name).then_some(Target::ItemOf(module));
        if let Some(target) = imported.or(child).or(item) {
            return Some(target);
        }
        let mut globs = imports.iter().filter(|import| import.name.is_none());
        globs.find_map(|glob| match self.resolve(module, &glob.path, visited)? {
            Target::Module(module) => self.look_up(module, name, is_last, visited),
            Target::ItemOf(_) => None,
        })
    }
}

/// Users and what they use: children of the same module.
type Edges<'a> = BTreeMap<(usize, usize), Vec<&'a Named>>;

struct Reader {
    modules: Vec<Module>,
    current: usize,
    file: PathBuf,
    /// Where the modules of this file are.
    folder: PathBuf,
    /// The names of the modules around this line, in this file.
    inline: PathBuf,
}

impl Reader {
    fn read_file(&mut self, file: &Path, folder: PathBuf) {
        let text = fs::read_to_string(file).unwrap();
        let content = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let file = std::mem::replace(&mut self.file, file.to_owned());
        let folder = std::mem::replace(&mut self.folder, folder);
        let inline = std::mem::take(&mut self.inline);
        self.visit_file(&content);
        self.file = file;
        self.folder = folder;
        self.inline = inline;
    }

    /// The files of a module without a body, each with the folder of its own modules.
    fn files(&self, module: &str, attributes: &[Attribute]) -> Vec<(PathBuf, PathBuf)> {
        let paths: Vec<_> = attributes.iter().flat_map(paths_in).collect();
        if paths.is_empty() {
            let folder = self.folder.join(&self.inline);
            let beside = folder.join(format!("{module}.rs"));
            let inside = folder.join(module).join("mod.rs");
            let file = if beside.exists() { beside } else { inside };
            return vec![(file, folder.join(module))];
        }
        let folder = if self.inline.as_os_str().is_empty() {
            self.file.parent().unwrap().to_owned()
        } else {
            self.folder.join(&self.inline)
        };
        let files = paths.into_iter().map(|path| folder.join(path));
        files.map(|file| (file.clone(), file.parent().unwrap().to_owned())).collect()
    }

    fn child(&mut self, name: &str) -> usize {
        if let Some(child) = self.modules[self.current].children.get(name) {
            return *child;
        }
        let child = self.modules.len();
        let full_name = format!("{}::{name}", self.modules[self.current].name);
        self.modules.push(Module {
            name: full_name,
            parent: Some(self.current),
            ..Module::default()
        });
        self.modules[self.current].children.insert(name.to_owned(), child);
        child
    }

    fn names(&mut self, path: Vec<String>, place: Span) {
        let line = Line { file: self.file.clone(), number: place.start().line };
        self.modules[self.current].paths.push(Named { path, line });
    }

    fn imports(&mut self, tree: &UseTree, before: &[String]) {
        let with = |ident: &Ident| [before, &[ident.unraw().to_string()]].concat();
        let (name, path, place) = match tree {
            UseTree::Path(path) => return self.imports(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.imports(tree, before));
            }
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned(), before.to_vec(), name.ident.span())
            }
            UseTree::Name(name) => {
                (Some(name.ident.unraw().to_string()), with(&name.ident), name.ident.span())
            }
            UseTree::Rename(rename) => {
                (Some(rename.rename.unraw().to_string()), with(&rename.ident), rename.ident.span())
            }
            UseTree::Glob(glob) => (None, before.to_vec(), glob.star_token.spans[0]),
        };
        self.names(path.clone(), place);
        self.modules[self.current].imports.push(Import { name, path });
    }

    /// The paths in what a macro gets or is made of, which only its expansion gives a meaning.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut place = Span::call_site();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.names(std::mem::take(&mut path), place);
                        place = ident.span();
                    }
                    path.push(ident.unraw().to_string());
                    colons = 0;
                }
                other => {
                    self.names(std::mem::take(&mut path), place);
                    colons = 0;
                    match other {
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        TokenTree::Literal(literal) => self.path_in_text(&Lit::new(literal)),
                        TokenTree::Ident(_) | TokenTree::Punct(_) => {}
                    }
                }
            }
        }
        self.names(path, place);
    }

    /// Attributes, such as serde's, name functions in texts.
    fn path_in_text(&mut self, literal: &Lit) {
        let Lit::Str(text) = literal else { return };
        if let Ok(path) = text.parse_with(syn::Path::parse_mod_style) {
            let path = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
            self.names(path.collect(), text.span());
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = head(item);
        if attributes.iter().any(is_for_tests) {
            return;
        }
        if let Some(name) = name {
            self.modules[self.current].items.insert(name.unraw().to_string());
        }
        match item {
            Item::Mod(module) => {
                let name = module.ident.unraw().to_string();
                let child = self.child(&name);
                let parent = std::mem::replace(&mut self.current, child);
                if let Some((_, items)) = &module.content {
                    self.inline.push(&name);
                    for item in items {
                        self.visit_item(item);
                    }
                    self.inline.pop();
                } else {
                    for (file, folder) in self.files(&name, attributes) {
                        self.read_file(&file, folder);
                    }
                }
                self.current = parent;
            }
            Item::Use(import) if import.leading_colon.is_none() => self.imports(&import.tree, &[]),
            Item::Use(_) => {}
            Item::Macro(definition) => self.tokens(definition.mac.tokens.clone()),
            other => visit::visit_item(self, other),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let is_for_tests = match item {
            ImplItem::Fn(function) => function.attrs.iter().any(is_for_tests),
            ImplItem::Const(constant) => constant.attrs.iter().any(is_for_tests),
            _ => false,
        };
        if !is_for_tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
            let place = path.segments.first().map_or_else(Span::call_site, |s| s.ident.span());
            self.names(names.collect(), place);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone());
        }
    }

    /// `pub(in crate::x)` uses nothing of `x`.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}
}

/// The attributes of an item, and its name unless it is a module.
fn head(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::ExternCrate(item) => (&item.attrs, None),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::ForeignMod(item) => (&item.attrs, None),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    let condition = list.tokens.to_string().replace(' ', "");
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
}

/// The values of `#[path = "..."]`, also inside `cfg_attr`.
fn paths_in(attribute: &Attribute) -> Vec<String> {
    let parts = match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .unwrap_or_default(),
        other => Punctuated::from_iter([other.clone()]),
    };
    let value = |part| match part {
        Meta::NameValue(value) if value.path.is_ident("path") => match value.value {
            Expr::Lit(literal) => Some(literal.lit),
            _ => None,
        },
        _ => None,
    };
    let text = |literal| match literal {
        Lit::Str(text) => Some(text.value()),
        _ => None,
    };
    parts.into_iter().filter_map(value).filter_map(text).collect()
}
