//! Describes the JSON that serde writes for structs, from their source: a description that is written
//! separately becomes wrong.

use std::collections::HashMap;
use std::fmt::Write as _;

use syn::{Attribute, Expr, ExprLit, GenericArgument, Item, ItemStruct, Lit, LitStr, Meta};
use syn::{PathArguments, PathSegment, Type, parse_file};

/// A key of a JSON document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonKey {
    /// The path from the document, such as `devices[].id`.
    pub path: String,
    /// The type of the value, for people.
    pub kind: String,
    /// The doc comment of the field.
    pub meaning: String,
    /// Whether a document may lack it.
    pub is_optional: bool,
}

type Structs = HashMap<String, ItemStruct>;

/// The keys of the document that serde writes for the struct `root` of the file `source`.
///
/// # Panics
/// A field has no doc comment, or a type or an attribute of serde that is not supported here.
#[must_use]
pub fn json_keys(source: &str, root: &str) -> Vec<JsonKey> {
    let file = parse_file(source).expect("the source compiles");
    let structs = file.items.into_iter().filter_map(|item| match item {
        Item::Struct(item) => Some((item.ident.to_string(), item)),
        _ => None,
    });
    let mut keys = Vec::new();
    add_keys(&mut keys, &structs.collect(), root, "", false);
    keys
}

/// The keys as a table in Markdown.
#[must_use]
pub fn json_table(keys: &[JsonKey]) -> String {
    let mut table = String::from("| Key | Type | Meaning |\n|---|---|---|\n");
    for JsonKey { path, kind, meaning, .. } in keys {
        let meaning = meaning.replace('|', "\\|");
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| `{path}` | {kind} | {meaning} |");
    }
    table
}

/// Adds the keys of the struct `name`, whose paths begin with `prefix`.
fn add_keys(
    keys: &mut Vec<JsonKey>,
    structs: &Structs,
    name: &str,
    prefix: &str,
    is_part_optional: bool,
) {
    let item = &structs[name];
    let is_camel_case = has_serde_option(&item.attrs, "rename_all", Some("camelCase"));
    for field in &item.fields {
        let field_name = field.ident.as_ref().expect("every field has a name").to_string();
        let meaning = doc_comment(&field.attrs);
        assert!(!meaning.is_empty(), "the field `{field_name}` of {name} has no doc comment");
        let is_optional = has_serde_option(&field.attrs, "skip_serializing_if", None);
        let value = Value::of(&field.ty, structs);
        let key = if is_camel_case { camel_case(&field_name) } else { field_name };
        let path = format!("{prefix}{key}");
        keys.push(JsonKey {
            path: path.clone(),
            kind: match (is_optional, value.is_nullable) {
                (true, _) => format!("{}, optional", value.kind),
                (false, true) => format!("{} or null", value.kind),
                (false, false) => value.kind,
            },
            meaning,
            is_optional: is_optional || is_part_optional,
        });
        if let Some((part, separator)) = value.part {
            let prefix = format!("{path}{separator}");
            add_keys(keys, structs, &part, &prefix, is_optional || is_part_optional);
        }
    }
}

/// What serde writes for a type.
struct Value {
    kind: String,
    is_nullable: bool,
    /// The struct whose keys the value has, or each element of the list, and what is between the path
    /// of the value and that of its keys.
    part: Option<(String, &'static str)>,
}

impl Value {
    fn of(ty: &Type, structs: &Structs) -> Value {
        match ty {
            Type::Reference(reference) => Value::of(&reference.elem, structs),
            Type::Slice(slice) => Value::list(&slice.elem, structs),
            Type::Path(path) => {
                let last = path.path.segments.last().expect("a path has a name");
                Value::of_named(last, structs)
            }
            _ => panic!("a document has values with names of types"),
        }
    }

    fn of_named(segment: &PathSegment, structs: &Structs) -> Value {
        let name = segment.ident.to_string();
        let kind = match name.as_str() {
            "String" | "str" => "string",
            "bool" => "boolean",
            "i64" | "u32" | "u64" | "usize" => "integer",
            "Option" => {
                let inner = Value::of(last_argument(segment), structs);
                return Value { is_nullable: true, ..inner };
            }
            "Vec" | "BTreeSet" => return Value::list(last_argument(segment), structs),
            "BTreeMap" => {
                let value = Value::of(last_argument(segment), structs);
                assert!(value.part.is_none(), "the values of a map have no keys");
                let kind = format!("object with {}s", value.kind);
                return Value { kind, is_nullable: false, part: None };
            }
            _ => {
                assert!(structs.contains_key(&name), "the JSON of {name} is not known");
                let part = Some((name, "."));
                return Value { kind: "object".to_owned(), is_nullable: false, part };
            }
        };
        Value { kind: kind.to_owned(), is_nullable: false, part: None }
    }

    fn list(element: &Type, structs: &Structs) -> Value {
        let element = Value::of(element, structs);
        Value {
            kind: format!("list of {}s", element.kind),
            is_nullable: false,
            part: element.part.map(|(name, _)| (name, "[].")),
        }
    }
}

/// The last type between the angle brackets.
fn last_argument(segment: &PathSegment) -> &Type {
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        panic!("{} has types", segment.ident);
    };
    let types = arguments.args.iter().filter_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    });
    types.last().unwrap_or_else(|| panic!("{} has types", segment.ident))
}

/// Whether serde's option `name` is given, with this `value` if there is one. Any other option could
/// change the document.
fn has_serde_option(attributes: &[Attribute], name: &str, value: Option<&str>) -> bool {
    let mut has_option = false;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        let parsed = attribute.parse_nested_meta(|option| {
            let given: LitStr = option.value()?.parse()?;
            let is_known =
                option.path.is_ident(name) && value.is_none_or(|value| given.value() == value);
            has_option |= is_known;
            if is_known { Ok(()) } else { Err(option.error("unknown option of serde")) }
        });
        parsed.unwrap_or_else(|error| panic!("{error}"));
    }
    has_option
}

/// The text of a doc comment, as one line.
fn doc_comment(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// As serde's `rename_all = "camelCase"`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |text, word| text + &word[..1].to_uppercase() + &word[1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_paths_types_and_comments() {
        let source = "
            #[derive(Serialize)]
            #[serde(rename_all = \"camelCase\")]
            struct Document<'a> {
                /// The first
                /// part.
                all_parts: Vec<Part<'a>>,
                /// One more.
                #[serde(skip_serializing_if = \"Option::is_none\")]
                last: Option<Part<'a>>,
            }
            struct Part<'a> {
                /// a|b
                its_names: BTreeMap<&'a str, String>,
                /// The size.
                size: Option<u64>,
            }";
        let keys = json_keys(source, "Document");
        assert_eq!(
            json_table(&keys),
            "| Key | Type | Meaning |\n|---|---|---|\n\
             | `allParts` | list of objects | The first part. |\n\
             | `allParts[].its_names` | object with strings | a\\|b |\n\
             | `allParts[].size` | integer or null | The size. |\n\
             | `last` | object, optional | One more. |\n\
             | `last.its_names` | object with strings | a\\|b |\n\
             | `last.size` | integer or null | The size. |\n"
        );
        let optional = keys.iter().filter(|key| key.is_optional).map(|key| key.path.as_str());
        assert_eq!(optional.collect::<Vec<_>>(), ["last", "last.its_names", "last.size"]);
    }

    #[test]
    #[should_panic(expected = "the field `size` of Document has no doc comment")]
    fn a_field_without_a_comment_fails() {
        let _ = json_keys("struct Document { size: u64 }", "Document");
    }

    #[test]
    #[should_panic(expected = "unknown option of serde")]
    fn an_option_that_changes_the_document_fails() {
        let source = "struct Document { /** The size. */ #[serde(rename = \"x\")] size: u64 }";
        let _ = json_keys(source, "Document");
    }
}
