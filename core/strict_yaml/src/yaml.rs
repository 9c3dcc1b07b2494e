//! YAML events into a tree.
//!
//! The tree is built on a stack of our own, so nesting costs no machine stack.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};

use crate::tree::{Builder, Entry, Fault, Id, MAX_DEPTH, Style, Tree};

/// The tree of the one document in `text`; `None` where there is none.
pub(crate) fn parse(text: &str) -> Result<Option<Tree>, Fault> {
    let mut reader = Reader::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| {
            let what = format!("not valid YAML: {}", error.info());
            Fault::new(line_number(error.marker().line()), what).reached(error.marker().index())
        })?;
        reader.event(event, span).map_err(|fault| fault.reached(span.start.index()))?;
    }
    Ok(reader.root.map(|root| reader.builder.finish(root)))
}

#[derive(Default)]
struct Reader {
    builder: Builder,
    /// Lists and mappings whose end has not come yet.
    open: Vec<Open>,
    /// Finished values that have an anchor.
    anchors: HashMap<usize, Id>,
    root: Option<Id>,
}

struct Open {
    line: u32,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Id>),
    Mapping { entries: Vec<Entry>, key: Option<(String, u32)> },
}

impl Reader {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let line = line_number(span.start.line());
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(Fault::new(line, "a second document begins; one file holds one document"))
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => Ok(()),
            Event::Alias(anchor) => self.alias(anchor, line),
            Event::Scalar(text, style, anchor, tag) => {
                refuse_tag(tag.as_deref(), line)?;
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    _ => Style::Quoted,
                };
                let id = self.builder.scalar(line, text.into_owned(), style)?;
                self.value(id, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), line)?;
                self.start(line, anchor, Content::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                refuse_tag(tag.as_deref(), line)?;
                self.start(line, anchor, Content::Mapping { entries: Vec::new(), key: None })
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn start(&mut self, line: u32, anchor: usize, content: Content) -> Result<(), Fault> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Fault::too_deep(line));
        }
        self.open.push(Open { line, anchor, content });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Open { line, anchor, content } =
            self.open.pop().expect("the parser pairs every end with a start");
        let id = match content {
            Content::List(items) => self.builder.list(line, items)?,
            Content::Mapping { entries, .. } => self.builder.mapping(line, entries)?,
        };
        self.value(id, anchor)
    }

    fn alias(&mut self, anchor: usize, line: u32) -> Result<(), Fault> {
        match self.anchors.get(&anchor) {
            Some(id) => self.value(*id, 0),
            None => Err(Fault::new(line, "an alias stands inside the value that it stands for")),
        }
    }

    /// Puts a finished value where it belongs. Anchor 0 is none.
    fn value(&mut self, id: Id, anchor: usize) -> Result<(), Fault> {
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(id);
            return Ok(());
        };
        match &mut open.content {
            Content::List(items) => items.push(id),
            Content::Mapping { entries, key } => match key.take() {
                Some((key, line)) => entries.push(Entry { key, line, value: id }),
                None => *key = Some(key_text(&self.builder, id)?),
            },
        }
        Ok(())
    }
}

fn key_text(builder: &Builder, id: Id) -> Result<(String, u32), Fault> {
    let line = builder.line_of(id);
    match builder.scalar_at(id) {
        Some(scalar) if scalar.style == Style::Plain && scalar.text.is_empty() => {
            Err(Fault::new(line, "a key is missing before the colon"))
        }
        Some(scalar) => Ok((scalar.text.clone(), line)),
        None => Err(Fault::new(line, "a key is a list or a mapping; keys are text")),
    }
}

fn refuse_tag(tag: Option<&Tag>, line: u32) -> Result<(), Fault> {
    match tag {
        Some(tag) => Err(Fault::new(line, format!("the tag `{tag}` is not supported"))),
        None => Ok(()),
    }
}

fn line_number(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}
