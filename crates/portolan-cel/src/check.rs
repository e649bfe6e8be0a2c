//! Finds what is wrong with an expression before it is evaluated: names that do not exist, and types that do not fit.

use kube_cel::cel::common::ast::operators as op;
use kube_cel::cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, SelectExpr};
use kube_cel::cel::{IdedExpr, Value};
use portolan_object::similar;

use crate::expression::{Expression, literal_text};
use crate::function;
use crate::types::{Record, Type};

/// Something wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeFault {
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Returns the type of an expression, and everything that is wrong with it.
///
/// `functions` are those that the caller's [`EvaluationScope`](crate::EvaluationScope) has beside the ones of CEL.
pub fn check(
    expression: &Expression,
    variables: &Record,
    functions: &[(&str, Type)],
) -> (Type, Vec<TypeFault>) {
    let mut check = Check {
        variables,
        functions,
        loops: Vec::new(),
        faults: Vec::new(),
    };
    let kind = check.kind(expression.tree());
    (kind, check.faults)
}

struct Check<'e> {
    variables: &'e Record,
    functions: &'e [(&'e str, Type)],
    /// Variables of loops, the innermost last.
    loops: Vec<(&'e str, Type)>,
    faults: Vec<TypeFault>,
}

impl<'e> Check<'e> {
    fn kind(&mut self, tree: &'e IdedExpr) -> Type {
        match &tree.expr {
            Expr::Literal(literal) => {
                literal_kind(Value::try_from(literal.to_val().as_ref()).ok().as_ref())
            }
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => self.select(select),
            Expr::List(list) => {
                let mut kinds: Vec<Type> =
                    list.elements.iter().map(|item| self.kind(item)).collect();
                kinds.dedup();
                let only = kinds.pop().filter(|_| kinds.is_empty());
                Type::list(only.unwrap_or(Type::Any))
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        self.kind(&entry.key);
                        self.kind(&entry.value);
                    }
                }
                Type::map(Type::Any)
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Call(call) => self.call(call),
            Expr::Struct(_) | Expr::Unspecified => {
                self.fault("makes a message, which cannot be done here", None);
                Type::Any
            }
        }
    }

    fn find(&self, name: &str) -> Option<Type> {
        let inner = self.loops.iter().rev().find(|(known, _)| *known == name);
        inner
            .map(|(_, kind)| kind)
            .or_else(|| self.variables.get(name))
            .cloned()
    }

    fn variable(&mut self, name: &str) -> Type {
        if let Some(kind) = self.find(name) {
            return kind;
        }
        let known: Vec<&str> = self.variables.keys().map(String::as_str).collect();
        self.unknown(&format!("`{name}` is not known here"), name, &known);
        Type::Any
    }

    fn select(&mut self, select: &'e SelectExpr) -> Type {
        let operand = self.kind(&select.operand);
        let field = self.field(&operand, &select.field);
        if select.test { Type::Boolean } else { field }
    }

    fn field(&mut self, operand: &Type, name: &str) -> Type {
        match operand {
            Type::Record(fields) => {
                if let Some(kind) = fields.get(name) {
                    return kind.clone();
                }
                let known: Vec<&str> = fields.keys().map(String::as_str).collect();
                self.unknown(&format!("there is no `{name}`"), name, &known);
                Type::Any
            }
            Type::Map(value) => (**value).clone(),
            Type::Any => Type::Any,
            other => {
                self.fault(
                    format!("asks for `{name}` of {other}, which has no keys"),
                    None,
                );
                Type::Any
            }
        }
    }

    fn comprehension(&mut self, loop_: &'e ComprehensionExpr) -> Type {
        let item = match self.kind(&loop_.iter_range) {
            Type::List(item) => *item,
            Type::Map(_) | Type::Record(_) => Type::Text,
            Type::Any => Type::Any,
            other => {
                self.fault(format!("loops over {other}, which is not a list"), None);
                Type::Any
            }
        };
        let gathered = match self.kind(&loop_.accu_init) {
            Type::List(_) => Type::list(Type::Any),
            other => other,
        };
        let outer = self.loops.len();
        self.loops.push((&loop_.accu_var, gathered));
        self.loops.push((&loop_.iter_var, item));
        self.kind(&loop_.loop_cond);
        self.kind(&loop_.loop_step);
        let result = self.kind(&loop_.result);
        self.loops.truncate(outer);
        result
    }

    fn call(&mut self, call: &'e CallExpr) -> Type {
        match (call.func_name.as_str(), call.args.as_slice()) {
            (op::LOGICAL_AND | op::LOGICAL_OR, [left, right]) => {
                self.demand_truth(left);
                self.demand_truth(right);
                Type::Boolean
            }
            (op::LOGICAL_NOT, [term]) => {
                self.demand_truth(term);
                Type::Boolean
            }
            (op::NOT_STRICTLY_FALSE, [term]) => {
                self.kind(term);
                Type::Boolean
            }
            (op::CONDITIONAL, [condition, yes, no]) => {
                self.demand_truth(condition);
                let (yes, no) = (self.kind(yes), self.kind(no));
                if yes == no { yes } else { Type::Any }
            }
            (op::INDEX, [value, key]) => self.index(value, key),
            (op::OPT_SELECT | op::OPT_INDEX, [value, key]) => {
                self.kind(value);
                self.kind(key);
                Type::Any
            }
            (op::NEGATE, [term]) => self.kind(term),
            (op::IN, [left, right]) => {
                self.kind(left);
                let right = self.kind(right);
                if !matches!(
                    right,
                    Type::Any | Type::List(_) | Type::Map(_) | Type::Record(_)
                ) {
                    self.fault(
                        format!("looks for something in {right}, which is not a list or map"),
                        None,
                    );
                }
                Type::Boolean
            }
            (
                op::EQUALS
                | op::NOT_EQUALS
                | op::LESS
                | op::LESS_EQUALS
                | op::GREATER
                | op::GREATER_EQUALS,
                [left, right],
            ) => {
                self.same_kind(left, right, "compares");
                Type::Boolean
            }
            (op::ADD | op::SUBSTRACT | op::MULTIPLY | op::DIVIDE | op::MODULO, [left, right]) => {
                self.same_kind(left, right, "combines")
            }
            _ => self.function(call),
        }
    }

    fn index(&mut self, value: &'e IdedExpr, key: &'e IdedExpr) -> Type {
        let operand = self.kind(value);
        let key_kind = self.kind(key);
        match (&operand, literal_text(key)) {
            (Type::Record(_) | Type::Map(_), Some(name)) => self.field(&operand, &name),
            (Type::Map(value), None) => (**value).clone(),
            (Type::List(item), _) if key_kind.meets(&Type::Integer) => (**item).clone(),
            (Type::Record(_) | Type::Any, _) => Type::Any,
            (other, _) => {
                self.fault(format!("takes an item of {other} by {key_kind}"), None);
                Type::Any
            }
        }
    }

    fn demand_truth(&mut self, tree: &'e IdedExpr) {
        let kind = self.kind(tree);
        if !kind.meets(&Type::Boolean) {
            self.fault(format!("needs true or false, not {kind}"), None);
        }
    }

    fn same_kind(&mut self, left: &'e IdedExpr, right: &'e IdedExpr, act: &str) -> Type {
        let (left, right) = (self.kind(left), self.kind(right));
        let fits_time = matches!((&left, &right), (Type::Duration, _) | (_, Type::Duration));
        if !left.meets(&right) && !fits_time {
            self.fault(format!("{act} {left} with {right}"), None);
        }
        if left == right { left } else { Type::Any }
    }

    fn function(&mut self, call: &'e CallExpr) -> Type {
        let mut name = call.func_name.clone();
        let mut count = call.args.len();
        if let Some(target) = call.target.as_deref() {
            match &target.expr {
                // `lists.range(3)` is one of a namespace, unless there is a variable of that name.
                Expr::Ident(prefix)
                    if self.find(prefix).is_none()
                        && function::named(&format!("{prefix}.{name}"), count).is_some() =>
                {
                    name = format!("{prefix}.{name}");
                }
                _ => {
                    self.kind(target);
                    count += 1;
                }
            }
        }
        for argument in &call.args {
            self.kind(argument);
        }
        let own = self.functions.iter().find(|(known, _)| *known == name);
        if let Some((_, kind)) = own.filter(|_| call.target.is_none()) {
            return kind.clone();
        }
        let is_built_in = matches!(
            (name.as_str(), count),
            ("dyn" | "size", 1) | ("matches" | "find", 2) | ("findAll", 2 | 3)
        );
        if !is_built_in && function::named(&name, count).is_none() {
            self.fault(
                format!("`{name}` with {count} arguments is not a function here"),
                None,
            );
        }
        result_of(&name)
    }

    fn unknown(&mut self, message: &str, name: &str, known: &[&str]) {
        let hint = match similar(name, known.iter(), |name| name) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None if known.is_empty() => None,
            None => Some(format!("there are {}", known.join(", "))),
        };
        self.fault(message, hint);
    }

    fn fault(&mut self, message: impl Into<String>, hint: Option<String>) {
        let fault = TypeFault {
            message: message.into(),
            hint,
        };
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }
}

fn literal_kind(value: Option<&Value>) -> Type {
    match value {
        Some(Value::Bool(_)) => Type::Boolean,
        Some(Value::Int(_) | Value::UInt(_)) => Type::Integer,
        Some(Value::Float(_)) => Type::Number,
        Some(Value::String(_)) => Type::Text,
        Some(Value::Null) => Type::Null,
        _ => Type::Any,
    }
}

/// What functions give whose result has one type.
fn result_of(name: &str) -> Type {
    match name {
        "size" | "int" | "indexOf" | "lastIndexOf" => Type::Integer,
        "double" => Type::Number,
        "contains" | "startsWith" | "endsWith" | "matches" | "isURL" | "isIP" | "isCIDR"
        | "isSemver" | "isSorted" => Type::Boolean,
        "string" | "join" | "lowerAscii" | "upperAscii" | "trim" | "replace" | "substring"
        | "charAt" | "find" | "strings.quote" => Type::Text,
        "split" | "findAll" => Type::list(Type::Text),
        "duration" => Type::Duration,
        _ => Type::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        let Type::Record(variables) = Type::record([
            (
                "inputs",
                Type::record([
                    ("version", Type::Text),
                    ("count", Type::Integer),
                    ("admins", Type::list(Type::Any)),
                ]),
            ),
            (
                "facts",
                Type::record([("os", Type::record([("family", Type::Text)]))]),
            ),
            ("result", Type::map(Type::Any)),
        ]) else {
            return Vec::new();
        };
        let expression = Expression::parse(text).expect("CEL");
        let functions = [("nodes", Type::list(Type::Any))];
        let (_, faults) = check(&expression, &variables, &functions);
        let shown = faults.into_iter().map(|fault| match fault.hint {
            Some(hint) => format!("{}; {hint}", fault.message),
            None => fault.message,
        });
        shown.collect()
    }

    #[test]
    fn names_and_types_are_checked() {
        for (text, expected) in [
            ("facts.os.family == 'debian' && inputs.count > 3", &[][..]),
            (
                "inputs.admins.filter(a, a.active).map(a, a.name).size() > 0",
                &[],
            ),
            ("nodes('role=db').map(n, n.address)", &[]),
            ("result.status == 200 || has(result.body)", &[]),
            ("'x' in inputs.admins", &[]),
            (
                "facts.os.famly == 'debian'",
                &["there is no `famly`; did you mean `family`?"],
            ),
            (
                "input.version == '1'",
                &["`input` is not known here; did you mean `inputs`?"],
            ),
            (
                "inputs.version == 1",
                &["compares a text with a whole number"],
            ),
            (
                "inputs.version && true",
                &["needs true or false, not a text"],
            ),
            (
                "inputs.version.major",
                &["asks for `major` of a text, which has no keys"],
            ),
            (
                "lower(inputs.version)",
                &["`lower` with 1 arguments is not a function here"],
            ),
            (
                "inputs['cuont'] + 1",
                &["there is no `cuont`; did you mean `count`?"],
            ),
        ] {
            assert_eq!(faults_of(text), expected, "{text}");
        }
    }
}
