//! The tokens of one Rust file, read as far as the import check needs: which modules it
//! declares, which names it imports, which items it defines, and which paths it names.
//!
//! Code under `#[cfg(test)]` is left out. Macro calls are read like other code, as
//! their arguments name items too.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

/// What one module contains.
#[derive(Default)]
pub(super) struct Source {
    pub(super) modules: Vec<ChildModule>,
    pub(super) imports: Vec<Import>,
    /// The names of the items that it defines.
    pub(super) items: BTreeSet<String>,
    /// Paths of two or more segments outside of imports.
    pub(super) paths: Vec<Vec<String>>,
    /// Every identifier outside of imports.
    pub(super) identifiers: BTreeSet<String>,
}

pub(super) struct ChildModule {
    pub(super) name: String,
    pub(super) body: Body,
}

pub(super) enum Body {
    /// `mod name { … }`
    Inline(Source),
    /// `mod name;`, with the paths of its `path` attributes. There are several if the file
    /// depends on the target, as in `#[cfg_attr(windows, path = "…")]`.
    File(Vec<String>),
}

/// One name that a `use` item brings in.
pub(super) struct Import {
    pub(super) path: Vec<String>,
    /// The name in this module; `None` for a glob import.
    pub(super) name: Option<String>,
    pub(super) visibility: Visibility,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Private,
    /// A re-export: `pub use` or `pub(…) use`.
    Exported,
}

/// Keywords before the name of an item.
const ITEM_KEYWORDS: [&str; 9] =
    ["struct", "enum", "union", "trait", "fn", "const", "static", "type", "macro_rules"];

/// Reads the text of a file.
pub(super) fn read(text: &str) -> Result<Source> {
    // A byte-order mark is no token.
    let text = text.trim_start_matches('\u{feff}');
    let tokens = TokenStream::from_str(text).map_err(|error| anyhow!("{error}"))?;
    let mut source = Source::default();
    Reader { tokens: tokens.into_iter().collect(), at: 0, source: &mut source }.read();
    Ok(source)
}

struct Reader<'a> {
    tokens: Vec<TokenTree>,
    at: usize,
    source: &'a mut Source,
}

impl Reader<'_> {
    fn read(mut self) {
        let mut path_attributes = Vec::new();
        let mut visibility = Visibility::Private;
        while let Some(token) = self.tokens.get(self.at) {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let Some(attribute) = self.attribute() else { continue };
                    if is_test_only(&attribute) {
                        self.skip_item();
                    }
                    path_attributes.extend(path_of(attribute.stream()));
                }
                TokenTree::Ident(identifier) => {
                    let word = identifier.to_string();
                    match word.as_str() {
                        "pub" => {
                            self.at += 1;
                            self.skip_group(Delimiter::Parenthesis);
                            visibility = Visibility::Exported;
                            continue;
                        }
                        "use" => self.imports(visibility),
                        "mod" => self.module(std::mem::take(&mut path_attributes)),
                        _ => self.word(&word),
                    }
                    visibility = Visibility::Private;
                }
                TokenTree::Group(group) => {
                    let tokens = group.stream().into_iter().collect();
                    self.at += 1;
                    Reader { tokens, at: 0, source: self.source }.read();
                }
                _ => self.at += 1,
            }
        }
    }

    /// The content of an attribute's brackets; the position is behind it, or behind a `#`
    /// that begins no attribute.
    fn attribute(&mut self) -> Option<Group> {
        self.at += 1;
        if self.punct(self.at) == Some('!') {
            self.at += 1;
        }
        match self.tokens.get(self.at) {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket => {
                self.at += 1;
                Some(group.clone())
            }
            _ => None,
        }
    }

    /// Skips an item, its further attributes included. It ends with a semicolon, or with
    /// a group in braces unless it is a `use` item, which has such groups inside.
    fn skip_item(&mut self) {
        while self.punct(self.at) == Some('#') && self.attribute().is_some() {}
        let start = self.at;
        let mut is_use = false;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                TokenTree::Punct(punct) if [';', ','].contains(&punct.as_char()) => return,
                TokenTree::Ident(word) if word == "use" && self.at - start <= 3 => is_use = true,
                TokenTree::Group(g) if g.delimiter() == Delimiter::Brace && !is_use => return,
                _ => {}
            }
        }
    }

    fn skip_group(&mut self, delimiter: Delimiter) {
        let group = self.tokens.get(self.at);
        if matches!(group, Some(TokenTree::Group(group)) if group.delimiter() == delimiter) {
            self.at += 1;
        }
    }

    /// `mod name;` or `mod name { … }`
    fn module(&mut self, paths: Vec<String>) {
        self.at += 1;
        let Some(TokenTree::Ident(name)) = self.tokens.get(self.at) else { return };
        let name = plain(&name.to_string());
        self.at += 1;
        let body = match self.tokens.get(self.at) {
            Some(TokenTree::Group(group)) => {
                let mut inner = Source::default();
                let tokens = group.stream().into_iter().collect();
                Reader { tokens, at: 0, source: &mut inner }.read();
                Body::Inline(inner)
            }
            _ => Body::File(paths),
        };
        self.at += 1;
        self.source.modules.push(ChildModule { name, body });
    }

    /// `use a::{b, c as d, e::*};`
    fn imports(&mut self, visibility: Visibility) {
        self.at += 1;
        let start = self.at;
        while self.at < self.tokens.len() && self.punct(self.at) != Some(';') {
            self.at += 1;
        }
        let tree = self.tokens[start..self.at].to_vec();
        // `use<'a>` in a type lists lifetimes and imports nothing.
        if !matches!(&tree.first(), Some(TokenTree::Punct(punct)) if punct.as_char() == '<') {
            use_tree(&tree, &[], visibility, &mut self.source.imports);
        }
    }

    /// A path, a keyword or another identifier.
    fn word(&mut self, word: &str) {
        let after_dot = self.at > 0 && self.punct(self.at - 1) == Some('.');
        if ITEM_KEYWORDS.contains(&word) {
            let is_macro = word == "macro_rules";
            let name = self.tokens.get(self.at + if is_macro { 2 } else { 1 });
            if let Some(TokenTree::Ident(name)) = name {
                self.source.items.insert(plain(&name.to_string()));
            }
        }
        let mut path = vec![plain(word)];
        self.at += 1;
        while self.punct(self.at) == Some(':') && self.punct(self.at + 1) == Some(':') {
            let Some(TokenTree::Ident(segment)) = self.tokens.get(self.at + 2) else { break };
            path.push(plain(&segment.to_string()));
            self.at += 3;
        }
        if after_dot {
            return;
        }
        self.source.identifiers.insert(path[0].clone());
        if path.len() > 1 {
            self.source.paths.push(path);
        }
    }

    fn punct(&self, at: usize) -> Option<char> {
        match self.tokens.get(at)? {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        }
    }
}

/// Adds the imports of `tree`, which comes after `prefix`.
fn use_tree(
    tree: &[TokenTree],
    prefix: &[String],
    visibility: Visibility,
    imports: &mut Vec<Import>,
) {
    let mut path = prefix.to_vec();
    let mut name = None;
    let mut tokens = tree.iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => {
                name = tokens.next().map(|token| plain(&token.to_string()));
            }
            TokenTree::Ident(word) if word == "self" && path.len() > prefix.len().max(1) => {}
            TokenTree::Ident(word) => path.push(plain(&word.to_string())),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma =
                    |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
                for part in inner.split(is_comma).filter(|part| !part.is_empty()) {
                    use_tree(part, &path, visibility, imports);
                }
                return;
            }
            TokenTree::Punct(punct) if punct.as_char() == '*' => {
                imports.push(Import { path, name: None, visibility });
                return;
            }
            _ => {}
        }
    }
    // `{self}` at the end of a path imports the module before it.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = name.or_else(|| path.last().cloned());
    imports.push(Import { path, name, visibility });
}

/// Whether an attribute is `cfg(test)`, or `cfg(all(test, …))`.
fn is_test_only(attribute: &Group) -> bool {
    let mut tokens = attribute.stream().into_iter();
    let is_cfg = matches!(tokens.next(), Some(TokenTree::Ident(word)) if word == "cfg");
    let Some(TokenTree::Group(condition)) = tokens.next().filter(|_| is_cfg) else { return false };
    requires_test(condition.stream())
}

fn requires_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(word)] => word == "test",
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "all" => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            inner.split(is_comma).any(|part| requires_test(part.iter().cloned().collect()))
        }
        _ => false,
    }
}

/// The value of `path = "…"` or `cfg_attr(…, path = "…")`.
fn path_of(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [.., TokenTree::Ident(word), TokenTree::Punct(_), TokenTree::Literal(value)]
            if word == "path" =>
        {
            Some(value.to_string().trim_matches('"').to_owned())
        }
        [TokenTree::Ident(word), TokenTree::Group(group)] if word == "cfg_attr" => {
            path_of(group.stream())
        }
        _ => None,
    }
}

/// An identifier without the mark of raw identifiers.
fn plain(word: &str) -> String {
    word.trim_start_matches("r#").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(text: &str) -> Vec<String> {
        let source = read(text).unwrap();
        let shown = source.imports.iter().map(|import| {
            format!("{} = {}", import.name.as_deref().unwrap_or("*"), import.path.join("::"))
        });
        shown.collect()
    }

    #[test]
    fn use_items_are_read() {
        assert_eq!(
            imports("use a::{self, b::{C, d as e}, f::*}; pub(crate) use super::super::x;"),
            ["a = a", "C = a::b::C", "e = a::b::d", "* = a::f", "x = super::super::x"]
        );
        assert_eq!(imports("use self::a::B;"), ["B = self::a::B"]);
        assert_eq!(imports("fn f<'a>() -> impl Sized + use<'a> { 1 }"), Vec::<String>::new());
    }

    #[test]
    fn paths_and_items_are_read() {
        let source = read("struct A; fn f(x: crate::b::B) { x.y::<u8>(); g!(super::c) }").unwrap();
        assert_eq!(source.paths, [vec!["crate", "b", "B"], vec!["super", "c"]]);
        assert!(source.items.contains("A") && source.items.contains("f"));
        assert!(!source.identifiers.contains("y"));
    }

    #[test]
    fn code_for_tests_is_left_out() {
        let text = "#[cfg(test)] #[path = \"x\"] mod tests; #[cfg(all(test, unix))] use a::{b}; \
                    #[cfg(not(test))] use c; #[cfg(test)] fn f() { d::e() } #[cfg(windows)] mod g;";
        let source = read(text).unwrap();
        let modules: Vec<&str> = source.modules.iter().map(|module| &*module.name).collect();
        assert_eq!(modules, ["g"]);
        assert!(source.paths.is_empty());
        assert_eq!(imports(text), ["c = c"]);
    }
}
