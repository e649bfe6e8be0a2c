//! Builds a tree from events: anchors and aliases, merge keys, repeated keys.
//!
//! Collections under construction are on a separate stack, so nesting does not use the program's stack. An alias
//! shares the tree of its anchor. So the size and height of a tree are kept: they limit what printing it will cost.

use std::collections::HashMap;

use crate::Dialect;
use crate::error::{Error, Fallible};
use crate::limits::{MAX_DEPTH, MAX_EXPANDED_BYTES, MAX_EXPANDED_NODES};
use crate::read::event::{EventKind, Properties};
use crate::read::map_builder::MapBuilder;
use crate::read::parser::Parser;
use crate::read::token::Mark;
use crate::value::node::{Entry, List, Map, Node, Scalar, Style, Tag, Value};
use crate::value::resolve;
use crate::value::text::Text;

/// Makes the documents of one stream.
pub(crate) struct Composer<'s> {
    parser: Parser<'s>,
    dialect: Dialect,
    /// Repeated keys are an error in the Helm dialect too.
    strict: bool,
    names: HashMap<Box<str>, usize>,
    anchored: Vec<Option<Anchored>>,
    open: Vec<Open>,
    /// The items of all open lists and the entries of all open maps.
    items: Vec<Node>,
    entries: Vec<Entry>,
    /// Builders of finished maps, to be used again.
    #[expect(
        clippy::vec_box,
        reason = "the boxes move between here and the open maps"
    )]
    idle: Vec<Box<MapBuilder>>,
    /// How many nodes Go would decode, aliases written out; and how many of them come from aliases.
    decoded: u64,
    from_aliases: u64,
    /// The same in bytes of text.
    text: u64,
    text_from_aliases: u64,
    /// Collections that lie deeper than this are looked through and left empty.
    kept_depth: usize,
}

/// Why a document is refused: its text cannot be read, or what it says makes no sense.
enum Failure {
    Syntax(Box<Error>),
    Meaning(Error),
}

/// A finished node with what it costs.
#[derive(Clone)]
struct Anchored {
    node: Node,
    size: u64,
    text: u64,
    height: usize,
}

/// A collection under construction.
struct Open {
    at: Mark,
    anchor: Option<usize>,
    decoded_before: u64,
    text_before: u64,
    height: usize,
    flow: bool,
    content: Content,
}

/// What the next node of a collection is that is only looked through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    List,
    Key,
    Value,
}

enum Content {
    /// Where the items begin on their stack.
    List(usize),
    Map(Box<MapBuilder>),
}

impl<'s> Composer<'s> {
    pub(crate) fn new(parser: Parser<'s>, dialect: Dialect, strict: bool) -> Self {
        Self {
            parser,
            dialect,
            strict,
            names: HashMap::new(),
            anchored: Vec::new(),
            open: Vec::with_capacity(16),
            items: Vec::with_capacity(16),
            entries: Vec::with_capacity(32),
            idle: Vec::new(),
            decoded: 0,
            from_aliases: 0,
            text: 0,
            text_from_aliases: 0,
            kept_depth: MAX_DEPTH,
        }
    }

    /// Keeps only so many levels of collections. What would need the rest, such as an alias, is then an error.
    pub(crate) fn keep(mut self, depth: usize) -> Self {
        self.kept_depth = depth;
        self
    }

    /// Whether the next collection lies deeper than what is kept; without such a wish the depth is an error.
    fn is_left_out(&self) -> bool {
        self.kept_depth < MAX_DEPTH && self.open.len() >= self.kept_depth
    }

    /// Where reading stands, and the line there.
    pub(crate) fn offset(&self) -> (usize, u32) {
        self.parser.offset()
    }

    /// The next document; `None` after the last.
    pub(crate) fn next_document(&mut self) -> Fallible<Option<Node>> {
        if let EventKind::StreamEnd = self.parser.next()?.kind {
            return Ok(None);
        }
        self.names.clear();
        self.anchored.clear();
        self.open.clear();
        self.items.clear();
        self.entries.clear();
        (self.decoded, self.from_aliases) = (1, 0);
        (self.text, self.text_from_aliases) = (0, 0);
        match self.read_root() {
            Ok(root) => {
                self.parser.next()?;
                Ok(Some(root))
            }
            Err(Failure::Syntax(error)) => Err(error),
            Err(Failure::Meaning(error)) => {
                self.skip_document()?;
                Err(Box::new(error))
            }
        }
    }

    /// Reads on to the document's end: Go looks at the meaning only when all of it could be read and every alias has
    /// its anchor.
    fn skip_document(&mut self) -> Fallible<()> {
        loop {
            let event = self.parser.next()?;
            if let Some(name) = event.properties.and_then(|properties| properties.anchor) {
                self.declare(name);
            }
            match event.kind {
                EventKind::DocumentEnd | EventKind::StreamEnd => return Ok(()),
                EventKind::Alias(name) if !self.names.contains_key(&name) => {
                    return Err(Box::new(unknown_anchor(&name, event.at)));
                }
                _ => {}
            }
        }
    }

    /// Reads events until a whole node is there that stands in no collection.
    fn read_root(&mut self) -> Result<Node, Failure> {
        loop {
            let event = self.parser.next()?;
            let (at, properties) = (event.at, event.properties);
            let (node, height, alias) = match event.kind {
                EventKind::Scalar { content, style } => {
                    let text = content.into_text(self.parser.source());
                    (
                        self.scalar(text, style, properties, at)
                            .map_err(Failure::Meaning)?,
                        0,
                        false,
                    )
                }
                EventKind::Entry {
                    key,
                    content,
                    style,
                    value_at,
                } => {
                    let key = Text::scanned(self.parser.source(), key.0, key.1);
                    let text = content.into_text(self.parser.source());
                    let value = self.scalar(text, style, None, value_at);
                    let value = value.map_err(Failure::Meaning)?;
                    self.add_entry(key, at, value).map_err(Failure::Meaning)?;
                    continue;
                }
                EventKind::Alias(name) => {
                    let target = self.alias(&name, at)?;
                    (target.node, target.height, true)
                }
                EventKind::ListStart { .. } if self.is_left_out() => {
                    self.look_through(vec![Inside::List], properties.is_some(), at)?;
                    (empty(Value::List(List::new()), at), 1, false)
                }
                EventKind::MapStart { .. } if self.is_left_out() => {
                    self.look_through(vec![Inside::Key], properties.is_some(), at)?;
                    (empty(Value::Map(Map::new()), at), 1, false)
                }
                EventKind::ListStart { flow } => {
                    self.begin(at, flow, properties, Content::List(self.items.len()))
                        .map_err(Failure::Meaning)?;
                    continue;
                }
                EventKind::MapStart { flow } => {
                    let builder = self.builder(flow);
                    self.begin(at, flow, properties, Content::Map(builder))
                        .map_err(Failure::Meaning)?;
                    continue;
                }
                EventKind::ListEnd | EventKind::MapEnd => {
                    match self.end().map_err(Failure::Meaning)? {
                        Some((node, height)) => (node, height, false),
                        None => return Err(out_of_place(at)),
                    }
                }
                _ => return Err(out_of_place(at)),
            };
            if self.open.is_empty() {
                return Ok(node);
            }
            self.add(node, height, alias).map_err(Failure::Meaning)?;
        }
    }

    /// Reads a collection to its end and keeps nothing of it.
    fn look_through(
        &mut self,
        mut inside: Vec<Inside>,
        has_properties: bool,
        at: Mark,
    ) -> Result<(), Failure> {
        if has_properties {
            return Err(needs_the_rest(at));
        }
        while let Some(place) = inside.last_mut() {
            let event = self.parser.next()?;
            let is_key = *place == Inside::Key;
            if event.properties.is_some() {
                return Err(needs_the_rest(event.at));
            }
            let opened = match event.kind {
                EventKind::Entry { key, .. } => {
                    let key = &self.parser.source()[key.0 as usize..key.1 as usize];
                    if key == "<<" || resolve::plain(self.dialect, key) != Tag::Str {
                        return Err(needs_the_rest(event.at));
                    }
                    continue;
                }
                // A key that is not written together with its value is rare.
                EventKind::Scalar { style, content } if is_key => {
                    let text = content.into_text(self.parser.source());
                    let scalar = resolve::helm(text, style, None);
                    if scalar.is_ok_and(|scalar| scalar.tag != Tag::Str) {
                        return Err(needs_the_rest(event.at));
                    }
                    None
                }
                EventKind::Scalar { .. } => None,
                EventKind::ListStart { .. } if !is_key => Some(Inside::List),
                EventKind::MapStart { .. } if !is_key => Some(Inside::Key),
                EventKind::ListEnd | EventKind::MapEnd => {
                    inside.pop();
                    continue;
                }
                _ => return Err(needs_the_rest(event.at)),
            };
            *place = match *place {
                Inside::Key => Inside::Value,
                Inside::Value => Inside::Key,
                Inside::List => Inside::List,
            };
            inside.extend(opened);
            if self.open.len() + inside.len() > MAX_DEPTH {
                return Err(needs_the_rest(event.at));
            }
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: Text,
        style: Style,
        properties: Option<Box<Properties>>,
        at: Mark,
    ) -> Result<Node, Error> {
        self.decoded += 1;
        self.text += text.len() as u64;
        let Properties { anchor, tag } = properties.map(|found| *found).unwrap_or_default();
        let anchor = anchor.map(|name| self.declare(name));
        let tag = tag.as_deref();
        let mut scalar = match self.dialect {
            Dialect::Helm => resolve::helm(text, style, tag)
                .map_err(|message| Error::new(at.position(), message))?,
            Dialect::Kustomize => resolve::kustomize(text, style, tag),
        };
        if scalar.tag == Tag::Merge && self.dialect == Dialect::Helm && !self.awaits_key() {
            scalar.tag = Tag::Str;
        }
        let untagged = matches!(tag, None | Some("!"));
        let flow = self.dialect == Dialect::Kustomize && self.in_flow();
        if flow && untagged && is_quoted_in_flow(&scalar) {
            scalar.style = Style::Flow;
        }
        if !untagged && self.dialect == Dialect::Kustomize && is_empty_null(&scalar) {
            // It is printed as `!!null ''`, which stays null.
            scalar.style = Style::Single;
        }
        let node = Node {
            value: Value::Scalar(scalar),
            at: at.position(),
        };
        if let Some(anchor) = anchor {
            self.anchored[anchor] = Some(Anchored {
                text: node
                    .as_scalar()
                    .map_or(0, |scalar| scalar.text.len() as u64),
                node: node.clone(),
                size: 1,
                height: 0,
            });
        }
        Ok(node)
    }

    fn in_flow(&self) -> bool {
        self.open.last().is_some_and(|open| open.flow)
    }

    fn awaits_key(&self) -> bool {
        match self.open.last().map(|open| &open.content) {
            Some(Content::Map(builder)) => builder.awaits_key(),
            _ => false,
        }
    }

    /// Gives a name to a node that is about to be read.
    fn declare(&mut self, name: Box<str>) -> usize {
        let anchor = self.anchored.len();
        self.names.insert(name, anchor);
        self.anchored.push(None);
        anchor
    }

    fn begin(
        &mut self,
        at: Mark,
        flow: bool,
        properties: Option<Box<Properties>>,
        content: Content,
    ) -> Result<(), Error> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("exceeded max depth of {MAX_DEPTH}");
            return Err(Error::new(at.position(), message));
        }
        let (decoded_before, text_before) = (self.decoded, self.text);
        self.decoded += 1;
        let name = properties.and_then(|properties| properties.anchor);
        let anchor = name.map(|name| self.declare(name));
        self.open.push(Open {
            at,
            anchor,
            decoded_before,
            text_before,
            height: 0,
            flow,
            content,
        });
        Ok(())
    }

    fn builder(&mut self, flow: bool) -> Box<MapBuilder> {
        let mut builder = self
            .idle
            .pop()
            .unwrap_or_else(|| Box::new(MapBuilder::new(self.dialect, self.strict)));
        builder.begin(flow, &self.entries);
        builder
    }

    /// Puts a finished node into the innermost collection.
    fn add(&mut self, node: Node, height: usize, alias: bool) -> Result<(), Error> {
        let Some(open) = self.open.last_mut() else {
            return Ok(());
        };
        open.height = open.height.max(height);
        match &mut open.content {
            Content::List(_) => self.items.push(node),
            Content::Map(builder) => builder.add(&mut self.entries, node, alias)?,
        }
        Ok(())
    }

    /// Puts a key and its value into the innermost map.
    fn add_entry(&mut self, key: Text, at: Mark, value: Node) -> Result<(), Error> {
        self.decoded += 1;
        self.text += key.len() as u64;
        match self.open.last_mut().map(|open| &mut open.content) {
            Some(Content::Map(builder)) => {
                builder.add_entry(&mut self.entries, key, at.position(), value)
            }
            _ => Ok(()),
        }
    }

    /// Finishes the innermost collection.
    fn end(&mut self) -> Result<Option<(Node, usize)>, Error> {
        let Some(open) = self.open.pop() else {
            return Ok(None);
        };
        let height = open.height + 1;
        let node = Node {
            value: match open.content {
                Content::List(start) => Value::List(List::read(self.items.drain(start..))),
                Content::Map(mut builder) => {
                    let map = builder.finish(&mut self.entries)?;
                    self.idle.push(builder);
                    Value::Map(map)
                }
            },
            at: open.at.position(),
        };
        if let Some(anchor) = open.anchor {
            self.anchored[anchor] = Some(Anchored {
                node: node.clone(),
                size: self.decoded - open.decoded_before,
                text: self.text - open.text_before,
                height,
            });
        }
        Ok(Some((node, height)))
    }

    fn alias(&mut self, name: &str, at: Mark) -> Result<Anchored, Failure> {
        let error = |message: String| Error::new(at.position(), message);
        let fail = |message: String| Err(Failure::Meaning(error(message)));
        let Some(&anchor) = self.names.get(name) else {
            return Err(Failure::Syntax(Box::new(unknown_anchor(name, at))));
        };
        let Some(target) = self.anchored.get(anchor).and_then(Clone::clone) else {
            return fail(format!("anchor '{name}' value contains itself"));
        };
        self.decoded += 1 + target.size;
        self.from_aliases += target.size;
        self.text += target.text;
        self.text_from_aliases += target.text;
        if self.text_from_aliases > MAX_EXPANDED_BYTES || self.too_many_aliases() {
            return fail("document contains excessive aliasing".to_owned());
        }
        if self.open.len() + target.height > MAX_DEPTH {
            return fail(format!("exceeded max depth of {MAX_DEPTH}"));
        }
        Ok(target)
    }

    /// v2 allows aliases to make up 99 % of a small document and 10 % of one with over four million nodes.
    fn too_many_aliases(&self) -> bool {
        const SMALL: f64 = 400_000.0;
        const LARGE: f64 = 4_000_000.0;
        if self.dialect == Dialect::Kustomize {
            return self.decoded > MAX_EXPANDED_NODES;
        }
        let decoded = self.decoded as f64;
        let allowed = 0.99 - 0.89 * ((decoded - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0);
        let share = self.from_aliases as f64 / decoded;
        self.from_aliases > 100 && self.decoded > 1000 && share > allowed
    }
}

impl From<Box<Error>> for Failure {
    fn from(error: Box<Error>) -> Self {
        Self::Syntax(error)
    }
}

/// Whether kustomize's first printing puts quotes around a plain scalar inside `{…}` or `[…]`.
fn is_quoted_in_flow(scalar: &Scalar) -> bool {
    scalar.style == Style::Plain
        && match scalar.tag {
            Tag::Null => scalar.text.is_empty(),
            Tag::Timestamp => scalar.text.contains(':'),
            _ => false,
        }
}

fn is_empty_null(scalar: &Scalar) -> bool {
    scalar.tag == Tag::Null && scalar.text.is_empty()
}

fn empty(value: Value, at: Mark) -> Node {
    Node {
        value,
        at: at.position(),
    }
}

fn unknown_anchor(name: &str, at: Mark) -> Error {
    let message = format!("unknown anchor '{name}' referenced");
    Error::new(at.position(), message)
}

fn needs_the_rest(at: Mark) -> Failure {
    Failure::Syntax(Box::new(Error::new(
        at.position(),
        "needs the whole document",
    )))
}

/// The parser never sends such an event; a message costs nothing.
fn out_of_place(at: Mark) -> Failure {
    Failure::Syntax(Box::new(Error::new(at.position(), "unexpected event")))
}
