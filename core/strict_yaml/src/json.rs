//! JSON (RFC 8259) into a tree.
//!
//! YAML 1.2 is nearly a superset of JSON; a reader of its own takes the rest:
//! tabs as indentation and escapes such as `\ud83d\ude00`, which in JSON are one
//! character outside the basic plane and in YAML are none.

use crate::tree::{Builder, Entry, Fault, Id, MAX_DEPTH, Style, Tree};

/// Whether `text` can only be JSON or a flow collection of YAML.
pub(crate) fn begins(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with(['{', '['])
}

/// The tree of the JSON document `text`.
pub(crate) fn parse(text: &str) -> Result<Tree, Fault> {
    let mut reader = Reader { rest: text, line: 1, depth: 0, builder: Builder::default() };
    match reader.document() {
        Ok(root) => Ok(reader.builder.finish(root)),
        Err(fault) => Err(fault.reached(text.len() - reader.rest.len())),
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: u32,
    depth: usize,
    builder: Builder,
}

impl Reader<'_> {
    fn document(&mut self) -> Result<Id, Fault> {
        let root = self.value()?;
        self.space();
        if self.rest.is_empty() {
            Ok(root)
        } else {
            Err(self.unexpected("the end of the document"))
        }
    }

    fn value(&mut self) -> Result<Id, Fault> {
        self.space();
        let line = self.line;
        match self.rest.as_bytes().first() {
            Some(b'{') => self.nested(|r| r.mapping(line)),
            Some(b'[') => self.nested(|r| r.list(line)),
            Some(b'"') => {
                let text = self.string()?;
                self.builder.scalar(line, text, Style::Quoted)
            }
            _ => {
                let word = self.word()?;
                self.builder.scalar(line, word, Style::Plain)
            }
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Id, Fault>) -> Result<Id, Fault> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::too_deep(self.line));
        }
        self.depth += 1;
        self.skip(1);
        let id = read(self)?;
        self.depth -= 1;
        Ok(id)
    }

    fn mapping(&mut self, line: u32) -> Result<Id, Fault> {
        let mut entries = Vec::new();
        if !self.eat('}') {
            loop {
                self.space();
                let line = self.line;
                if !self.rest.starts_with('"') {
                    return Err(self.unexpected("a key in quotes"));
                }
                let key = self.string()?;
                self.expect(':', "a colon after the key")?;
                let value = self.value()?;
                entries.push(Entry { key, line, value });
                if self.eat('}') {
                    break;
                }
                self.expect(',', "a comma or `}`")?;
            }
        }
        self.builder.mapping(line, entries)
    }

    fn list(&mut self, line: u32) -> Result<Id, Fault> {
        let mut items = Vec::new();
        if !self.eat(']') {
            loop {
                items.push(self.value()?);
                if self.eat(']') {
                    break;
                }
                self.expect(',', "a comma or `]`")?;
            }
        }
        self.builder.list(line, items)
    }

    /// `true`, `false`, `null` or a number, as spelled.
    fn word(&mut self) -> Result<String, Fault> {
        let inner = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let end = self.rest.find(|c| !inner(c)).unwrap_or(self.rest.len());
        let word = &self.rest[..end];
        if !matches!(word, "true" | "false" | "null") && !is_number(word) {
            return Err(self.unexpected("a value"));
        }
        let word = word.to_owned();
        self.skip(end);
        Ok(word)
    }

    fn string(&mut self) -> Result<String, Fault> {
        self.skip(1);
        let mut text = String::new();
        loop {
            let plain = self
                .rest
                .find(|c: char| c == '"' || c == '\\' || c < ' ')
                .unwrap_or(self.rest.len());
            text.push_str(&self.rest[..plain]);
            self.skip(plain);
            match self.rest.chars().next() {
                Some('"') => {
                    self.skip(1);
                    return Ok(text);
                }
                Some('\\') => text.push(self.escape()?),
                Some(_) => return Err(self.unexpected("text; control characters are escaped")),
                None => return Err(self.unexpected("a closing quote")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let simple = match self.rest.as_bytes().get(1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.invalid("an escape that JSON does not have")),
        };
        self.skip(2);
        Ok(simple)
    }

    /// `\uXXXX`, or two of them that make one character together.
    fn unicode(&mut self) -> Result<char, Fault> {
        let high = self.unit()?;
        let low = match high {
            0xD800..0xDC00 if self.rest.starts_with("\\u") => Some(self.unit()?),
            _ => None,
        };
        let mut chars = char::decode_utf16(std::iter::once(high).chain(low));
        if let (Some(Ok(c)), None) = (chars.next(), chars.next()) {
            return Ok(c);
        }
        Err(self.invalid(&format!("the escape `\\u{high:04x}` is half a character")))
    }

    fn unit(&mut self) -> Result<u16, Fault> {
        let unit = self
            .rest
            .get(2..6)
            .filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok())
            .ok_or_else(|| self.invalid("four hexadecimal digits must follow `\\u`"))?;
        self.skip(6);
        Ok(unit)
    }

    fn space(&mut self) {
        let rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let skipped = &self.rest[..self.rest.len() - rest.len()];
        let lines = skipped.bytes().filter(|b| *b == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        self.rest = rest;
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char, name: &str) -> Result<(), Fault> {
        if self.eat(wanted) { Ok(()) } else { Err(self.unexpected(name)) }
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let found = match self.rest.chars().next() {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "the end of the document".to_owned(),
        };
        self.invalid(&format!("expected {wanted}, found {found}"))
    }

    fn invalid(&self, what: &str) -> Fault {
        Fault::new(self.line, format!("not valid JSON: {what}"))
    }
}

/// Whether `word` is a number as JSON spells it.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|e| digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}
