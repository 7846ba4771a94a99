//! The schema of one kind: its fields, and how lists and maps in it merge.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    FieldError,
    cel::Rule,
    structural,
    validate::{self, Checks},
};

/// A structural schema. Immutable, and cheap to share: parts that occur in several kinds are held once.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) root: Arc<Node>,
    pub(crate) builtin: bool,
}

impl Schema {
    /// Reads the `openAPIV3Schema` of a version of a CustomResourceDefinition.
    ///
    /// `apiVersion`, `kind` and `metadata` are added as every object has them. CEL rules are compiled here.
    ///
    /// # Errors
    /// Every breach of the rules of structural schemas, with its path below `openAPIV3Schema`; see [`FieldError::under`].
    pub fn from_crd(schema: &Value) -> Result<Schema, Vec<FieldError>> {
        structural::read(schema)
    }

    /// What is wrong with `object`; `old` is the version before an update, for transition rules. In the order of the fields.
    ///
    /// For built-in kinds this checks types only; [`builtin_validate`](crate::builtin_validate) has their rules.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        validate::object(&self.root, object, old)
    }

    /// Sets what is absent and has a default, also inside items of lists and maps. Applying it twice changes nothing more.
    ///
    /// A null where none is allowed counts as absent: it is replaced by the default, or dropped where there is none.
    pub fn default(&self, object: &mut Value) {
        self.root.default_children(object, true);
    }

    /// Removes the fields that the schema does not know, and returns their paths, as `spec.containers[0].bar`.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut unknown = Vec::new();
        self.root.prune(object, &mut String::new(), &mut unknown);
        unknown
    }

    /// Why an object of a built-in kind cannot be read, in the words of a Kubernetes server: the first value of a wrong type.
    ///
    /// None if there is none, or it cannot be told in these words.
    pub fn unmarshal_fault(&self, object: &Value) -> Option<String> {
        self.builtin
            .then(|| crate::unmarshal::fault(&self.root, object))
            .flatten()
    }

    /// Brings the values of a built-in kind into the form that an API server stores: quantities canonical, no nulls.
    /// Objects of custom kinds are left alone.
    pub fn canonicalize(&self, object: &mut Value) {
        if self.builtin {
            self.root.canonicalize(object);
        }
    }
}

/// What kind of value stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything; unknown to the schema.
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
    /// A string or number such as `500m` or `1Gi`.
    Quantity,
}

impl Kind {
    /// The name of the type in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Any => "any",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::IntOrString => "integer,string",
            Kind::Quantity => "quantity",
        }
    }
}

/// How two versions of a list merge in server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListType {
    /// As a whole.
    #[default]
    Atomic,
    /// Item by item; items are scalars.
    Set,
    /// Item by item; items are objects, told apart by these fields (sorted by name).
    Map(Box<[Box<str>]>),
}

/// How a field merges in a strategic merge patch, where that is not the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PatchStrategy {
    /// The list merges, by this field of its items, or as a set of scalars where it is empty. None: the list is replaced.
    pub merge_key: Option<&'static str>,
    /// Fields that are not in the patch's `$retainKeys` are cleared.
    pub retain_keys: bool,
    /// The object is replaced instead of merged.
    pub replace: bool,
}

/// One place in a schema.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: Kind,
    pub nullable: bool,
    /// Fields that are not named here stay.
    pub preserve_unknown: bool,
    /// The value is an object with apiVersion, kind and metadata of its own.
    pub embedded: bool,
    /// A map that merges as a whole.
    pub atomic_map: bool,
    /// Sorted by name.
    pub properties: Vec<(Box<str>, Arc<Node>)>,
    /// What stands under names that are not in `properties`.
    pub additional: Option<Arc<Node>>,
    pub items: Option<Arc<Node>>,
    pub list: ListType,
    pub patch: PatchStrategy,
    pub default: Option<Box<Value>>,
    pub checks: Option<Box<Checks>>,
    pub rules: Vec<Rule>,
    /// Whether there are rules here or below.
    pub has_rules: bool,
    /// Of an object of built-in kinds: its type in the Go language, as `v1.Container`, for messages.
    pub go_name: Option<Box<str>>,
    /// Of a scalar of built-in kinds: its format, as `int32`, for messages.
    pub go_format: Option<Box<str>>,
}

impl Node {
    /// A place without constraints of its own.
    pub(crate) fn new(kind: Kind) -> Node {
        Node {
            kind,
            nullable: false,
            preserve_unknown: kind == Kind::Any,
            embedded: false,
            atomic_map: false,
            properties: Vec::new(),
            additional: None,
            items: None,
            list: ListType::Atomic,
            patch: PatchStrategy::default(),
            default: None,
            checks: None,
            rules: Vec::new(),
            has_rules: false,
            go_name: None,
            go_format: None,
        }
    }

    /// The field that is declared under this name.
    pub(crate) fn property(&self, name: &str) -> Option<&Arc<Node>> {
        let at = self
            .properties
            .binary_search_by(|(n, _)| n.as_ref().cmp(name))
            .ok()?;
        self.properties.get(at).map(|(_, node)| node)
    }

    /// What stands under this name: the declared field, else what the map holds, else nothing is known.
    pub(crate) fn field(&self, name: &str) -> Option<&Node> {
        self.property(name)
            .or(self.additional.as_ref())
            .map(Arc::as_ref)
    }

    /// Whether a value here merges field by field or item by item.
    pub(crate) fn merges(&self, value: &Value) -> bool {
        match value {
            Value::Object(_) => !self.atomic_map && matches!(self.kind, Kind::Object | Kind::Any),
            Value::Array(_) => self.kind == Kind::Array && self.list != ListType::Atomic,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
    }
}

/// The place about which nothing is known.
pub(crate) fn anything() -> &'static Node {
    static ANY: std::sync::OnceLock<Node> = std::sync::OnceLock::new();
    ANY.get_or_init(|| Node::new(Kind::Any))
}
