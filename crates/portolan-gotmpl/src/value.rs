//! Data as in a Go program: every value has one of Go's kinds, lists and maps have a Go type.
//!
//! Cloning a value never copies its content. Maps are shared and mutable: a `set` through one reference is visible
//! through all of them. Lists are immutable, because no template function changes a Go slice in place.

use std::any::Any;
use std::borrow::Cow;
use std::cell::{OnceCell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

pub use portolan_go::strconv::FloatKind;
use portolan_yaml::Text;

use crate::object::{Kind, Object};

/// How deep values may nest before functions that walk them give up: maps can hold themselves.
pub const MAX_DEPTH: usize = portolan_go::fmt::MAX_DEPTH;

/// A value of a template: a field, a variable, a function's argument or result.
#[derive(Clone, Default)]
pub enum Value {
    /// `nil`, with or without a type.
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// A signed integer of some width.
    Int(IntKind, i64),
    /// An unsigned integer of some width.
    Uint(UintKind, u64),
    /// A floating point number of some width.
    Float(FloatKind, f64),
    /// `complex128`: the real and the imaginary part.
    Complex(f64, f64),
    /// `string`
    Str(Text),
    /// A `string` whose bytes are not UTF-8, such as one cut inside a character.
    RawStr(Rc<[u8]>),
    /// `[]byte`
    Bytes(Rc<[u8]>),
    /// A slice.
    List(Rc<List>),
    /// A map with string keys.
    Map(Rc<Map>),
    /// Anything else that Go code would hand to a template: a struct, a named type with methods.
    Object(Rc<dyn Object>),
}

/// Which signed integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IntKind {
    /// `int`, 64 bits wide.
    #[default]
    Int,
    /// `int32`, the type of a `rune`.
    Int32,
    /// `int64`
    Int64,
}

/// Which unsigned integer type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UintKind {
    /// `uint`, 64 bits wide.
    #[default]
    Uint,
    /// `uint8`, an element of a `[]byte`.
    Uint8,
    /// `uint32`
    Uint32,
    /// `uint64`
    Uint64,
}

/// What the elements of a list are declared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElementType {
    /// `[]interface {}`
    #[default]
    Any,
    /// `[]string`
    Str,
    /// `[]int`
    Int,
    /// `[][]interface {}`, what `chunk` makes.
    AnyList,
    /// `[]map[string]interface {}`
    AnyMap,
    /// A slice of host objects, such as `[]*chart.Maintainer`.
    Objects(&'static str),
}

/// What a map's Go type is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapType {
    /// `map[string]interface {}`
    #[default]
    Any,
    /// `map[string]string`
    Str,
    /// `map[string][]uint8`, what `.Files` is inside.
    Bytes,
    /// A named `map[string]interface {}` with methods, such as `chartutil.Values`.
    Values(&'static str),
}

/// The items of a slice and their declared type.
#[derive(Default)]
pub struct List {
    element: ElementType,
    items: Vec<Value>,
    nil: bool,
}

/// The entries of a map in key order, shared by all who hold it.
pub struct Map {
    map_type: MapType,
    entries: Entries,
}

enum Entries {
    Own(RefCell<BTreeMap<Text, Value>>),
    /// None, because the map was never made; nobody may add any.
    Nil(RefCell<BTreeMap<Text, Value>>),
    /// Data that nobody has looked at yet, and its copy from then on.
    Frozen {
        source: Rc<dyn Frozen>,
        thawed: OnceCell<RefCell<BTreeMap<Text, Value>>>,
    },
    /// Those of a plain map that this one gives another type: a change to one is a change to both.
    Shared(Rc<Map>),
}

/// Immutable data that many renders share: a map made of it copies a level only when a template looks at it.
pub trait Frozen: Any {
    /// A fresh copy of the entries; tables below them may stay frozen.
    fn thaw(&self) -> BTreeMap<Text, Value>;
}

// === impl Value ===

impl Value {
    /// An `int`.
    pub fn int(value: i64) -> Self {
        Self::Int(IntKind::Int, value)
    }

    /// An `int64`.
    pub fn int64(value: i64) -> Self {
        Self::Int(IntKind::Int64, value)
    }

    /// A `float64`.
    pub fn float(value: f64) -> Self {
        Self::Float(FloatKind::Float64, value)
    }

    /// A `string`.
    pub fn str(text: impl Into<Text>) -> Self {
        Self::Str(text.into())
    }

    /// A `string` of any bytes.
    pub fn str_from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::str(text),
            Err(_) => Self::RawStr(bytes.into()),
        }
    }

    /// A `[]byte`.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }

    /// A `[]interface {}`.
    pub fn list(items: Vec<Self>) -> Self {
        Self::typed_list(ElementType::Any, items)
    }

    /// A `[]string`.
    pub fn strings<T: Into<Text>>(items: impl IntoIterator<Item = T>) -> Self {
        let items = items.into_iter().map(Self::str).collect();
        Self::typed_list(ElementType::Str, items)
    }

    /// A slice of some element type.
    pub fn typed_list(element: ElementType, items: Vec<Self>) -> Self {
        Self::List(Rc::new(List {
            element,
            items,
            nil: false,
        }))
    }

    /// A slice of some element type that was never made: empty, but `null` in JSON.
    pub fn nil_list(element: ElementType) -> Self {
        Self::List(Rc::new(List {
            element,
            items: Vec::new(),
            nil: true,
        }))
    }

    /// A `map[string]interface {}`.
    pub fn map(entries: BTreeMap<Text, Self>) -> Self {
        Self::typed_map(MapType::Any, entries)
    }

    /// A map of some type that was never made: empty, but `null` in JSON.
    pub fn nil_map(map_type: MapType) -> Self {
        Self::Map(Rc::new(Map {
            map_type,
            entries: Entries::Nil(RefCell::default()),
        }))
    }

    /// A map of some type.
    pub fn typed_map(map_type: MapType, entries: BTreeMap<Text, Self>) -> Self {
        Self::Map(Rc::new(Map::new(map_type, entries)))
    }

    /// A host object.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Rc::new(object))
    }

    /// The text of a string; none for bytes and for strings that are not UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The bytes of a string or of a `[]byte`.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Str(text) => Some(text.as_bytes()),
            Self::RawStr(bytes) | Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The list, when it is one.
    pub fn as_list(&self) -> Option<&Rc<List>> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The map, when it is one.
    pub fn as_map(&self) -> Option<&Rc<Map>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The host object of a Rust type, when it is one.
    pub fn downcast<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Whether it is `nil`.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// Whether `if` takes it: not false, zero, nil or empty.
    pub fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(_, value) => *value != 0,
            Self::Uint(_, value) => *value != 0,
            Self::Float(_, value) => *value != 0.0,
            Self::Complex(re, im) => *re != 0.0 || *im != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::RawStr(bytes) | Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.is_empty(),
            Self::Map(map) => !map.borrow().is_empty(),
            Self::Object(object) => object.truth(),
        }
    }

    /// Whether it is a map or a list, which may hold more of them.
    fn is_nested(&self) -> bool {
        matches!(self, Self::Map(_) | Self::List(_))
    }

    /// What `reflect` calls its kind; nil is `invalid`.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(IntKind::Int, _) => Kind::Int,
            Self::Int(IntKind::Int32, _) => Kind::Int32,
            Self::Int(IntKind::Int64, _) => Kind::Int64,
            Self::Uint(UintKind::Uint, _) => Kind::Uint,
            Self::Uint(UintKind::Uint8, _) => Kind::Uint8,
            Self::Uint(UintKind::Uint32, _) => Kind::Uint32,
            Self::Uint(UintKind::Uint64, _) => Kind::Uint64,
            Self::Float(FloatKind::Float64, _) => Kind::Float64,
            Self::Float(FloatKind::Float32, _) => Kind::Float32,
            Self::Complex(..) => Kind::Complex128,
            Self::Str(_) | Self::RawStr(_) => Kind::String,
            Self::Bytes(_) | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
        }
    }

    /// Its Go type as `%T` prints it; `<nil>` for nil.
    pub fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Nil => "<nil>",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => list.element.list_name(),
            Self::Map(map) => map.map_type.name(),
            Self::Object(object) => return object.type_name(),
            scalar => scalar.kind().name(),
        })
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<Text> for Value {
    fn from(text: Text) -> Self {
        Self::Str(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::str(text)
    }
}

impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Self::str(text)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.type_name())
    }
}

// === impl ElementType ===

impl ElementType {
    /// The type of one element.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
            Self::AnyList => "[]interface {}",
            Self::AnyMap => "map[string]interface {}",
            Self::Objects(list) => list.strip_prefix("[]").unwrap_or(list),
        }
    }

    /// The type of a slice of them.
    pub fn list_name(self) -> &'static str {
        match self {
            Self::Any => "[]interface {}",
            Self::Str => "[]string",
            Self::Objects(name) => name,
            Self::Int => "[]int",
            Self::AnyList => "[][]interface {}",
            Self::AnyMap => "[]map[string]interface {}",
        }
    }
}

// === impl MapType ===

impl MapType {
    /// The map's type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "map[string]interface {}",
            Self::Str => "map[string]string",
            Self::Bytes => "map[string][]uint8",
            Self::Values(name) => name,
        }
    }

    /// Whether the values are declared as `interface {}`.
    pub(crate) fn is_boxed(self) -> bool {
        matches!(self, Self::Any | Self::Values(_))
    }

    /// What Go gives for a key that is not there.
    pub(crate) fn zero(self) -> Value {
        match self {
            Self::Any | Self::Values(_) => Value::Nil,
            Self::Str => Value::str(Text::default()),
            Self::Bytes => Value::bytes(b""),
        }
    }
}

// === impl List ===

impl List {
    /// What the elements are declared as.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Whether it was never made; such a list is empty.
    pub fn is_nil(&self) -> bool {
        self.nil
    }
}

impl List {
    /// The items, without a copy when nobody else holds the list.
    pub(crate) fn into_items(self: Rc<Self>) -> Vec<Value> {
        match Rc::try_unwrap(self) {
            Ok(mut list) => std::mem::take(&mut list.items),
            Err(shared) => shared.items.clone(),
        }
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.items
    }
}

impl Drop for List {
    fn drop(&mut self) {
        drop_flat(std::mem::take(&mut self.items));
    }
}

// === impl Map ===

impl Map {
    /// A map of a type.
    pub fn new(map_type: MapType, entries: BTreeMap<Text, Value>) -> Self {
        let own = Entries::Own(RefCell::new(entries));
        match map_type {
            MapType::Values(_) => Self {
                map_type,
                entries: Entries::Shared(Rc::new(Self {
                    map_type: MapType::Any,
                    entries: own,
                })),
            },
            _ => Self {
                map_type,
                entries: own,
            },
        }
    }

    /// A plain map under the name of another type.
    pub fn named(name: &'static str, plain: Rc<Self>) -> Self {
        Self {
            map_type: MapType::Values(name),
            entries: Entries::Shared(plain),
        }
    }

    /// The plain map inside a named one.
    pub fn plain(&self) -> Option<Rc<Self>> {
        match &self.entries {
            Entries::Own(_) | Entries::Nil(_) | Entries::Frozen { .. } => None,
            Entries::Shared(plain) => Some(Rc::clone(plain)),
        }
    }

    /// A `map[string]interface {}` of data that is copied when it is first looked at.
    pub fn frozen(source: Rc<dyn Frozen>) -> Self {
        Self {
            map_type: MapType::Any,
            entries: Entries::Frozen {
                source,
                thawed: OnceCell::new(),
            },
        }
    }

    /// The data it was made of, when nobody has looked at it since.
    pub fn untouched<T: Frozen>(&self) -> Option<&T> {
        match &self.entries {
            Entries::Frozen { source, thawed } if thawed.get().is_none() => {
                let source: &dyn Any = &**source;
                source.downcast_ref()
            }
            _ => None,
        }
    }

    /// Another map of the same data, where nobody has looked at this one since it was made.
    pub(crate) fn frozen_copy(&self) -> Option<Self> {
        match &self.entries {
            Entries::Frozen { source, thawed } if thawed.get().is_none() => {
                Some(Self::frozen(Rc::clone(source)))
            }
            _ => None,
        }
    }

    fn cell(&self) -> &RefCell<BTreeMap<Text, Value>> {
        let mut map = self;
        loop {
            match &map.entries {
                Entries::Own(cell) | Entries::Nil(cell) => return cell,
                Entries::Frozen { source, thawed } => {
                    return thawed.get_or_init(|| RefCell::new(source.thaw()));
                }
                Entries::Shared(plain) => map = plain,
            }
        }
    }

    /// Whether it was never made; such a map is empty.
    pub fn is_nil(&self) -> bool {
        matches!(self.entries, Entries::Nil(_))
    }

    /// Its Go type.
    pub fn map_type(&self) -> MapType {
        self.map_type
    }

    /// The entries, to read; keep the borrow short, never across a call that may `set`.
    pub fn borrow(&self) -> Ref<'_, BTreeMap<Text, Value>> {
        self.cell().borrow()
    }

    /// The entries, to change; keep the borrow short.
    pub fn borrow_mut(&self) -> RefMut<'_, BTreeMap<Text, Value>> {
        self.cell().borrow_mut()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.borrow().get(key).cloned()
    }

    /// Sets a key.
    pub fn insert(&self, key: impl Into<Text>, value: Value) {
        self.borrow_mut().insert(key.into(), value);
    }

    /// How many entries it holds itself: none while nobody has looked at them, or where they are another map's.
    pub(crate) fn own_len(&self) -> usize {
        match &self.entries {
            Entries::Own(cell) => cell.borrow().len(),
            Entries::Nil(_) | Entries::Frozen { .. } | Entries::Shared(_) => 0,
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.borrow().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.borrow().is_empty()
    }

    /// The keys and values as they are now, in key order, safe to walk while the map changes.
    pub fn snapshot(&self) -> Vec<(Text, Value)> {
        let entries = self.borrow();
        entries
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        drop_flat(self.take_nested());
    }
}

impl Map {
    /// The maps and lists in a map that nobody holds any more; everything else in it is freed.
    fn take_nested(&mut self) -> Vec<Value> {
        let entries = match &mut self.entries {
            Entries::Own(cell) | Entries::Nil(cell) => std::mem::take(cell.get_mut()),
            Entries::Frozen { thawed, .. } => {
                thawed.take().map(RefCell::into_inner).unwrap_or_default()
            }
            Entries::Shared(_) => return Vec::new(),
        };
        entries.into_values().filter(Value::is_nested).collect()
    }
}

/// Frees values without recursion: a loop in a template can nest lists far deeper than a stack can unwind.
fn drop_flat(mut items: Vec<Value>) {
    while let Some(item) = items.pop() {
        match item {
            Value::List(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    items.append(&mut list.items);
                }
            }
            Value::Map(map) => {
                if let Some(mut map) = Rc::into_inner(map) {
                    items.append(&mut map.take_nested());
                }
            }
            _ => {}
        }
    }
}
