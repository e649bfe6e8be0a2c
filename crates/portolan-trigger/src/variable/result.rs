//! Values that are made of the result of a step.

use portolan_cel::Expression;
use serde_json::{Map, Value as Json};

use super::graph::{bounded, evaluated};

/// Computes values from the result of a step, which is `result`.
///
/// ```
/// use serde_json::json;
///
/// let expressions = json!({"leader": "result.stdout"});
/// let expressions = expressions.as_object().ok_or("a map")?;
/// let values = portolan_trigger::result_values(expressions, &json!({"stdout": "web-1"}))?;
/// assert_eq!(values["leader"], "web-1");
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// When an expression cannot be read or computed, or gives too much.
pub fn result_values(
    expressions: &Map<String, Json>,
    result: &Json,
) -> Result<Map<String, Json>, String> {
    let mut values = Map::new();
    for (name, text) in expressions {
        let wrong = |why: String| format!("`{name}`: {why}");
        let expression = read_result(text.as_str().unwrap_or_default()).map_err(wrong)?;
        let value = evaluated(&expression, "result", result).and_then(bounded);
        values.insert(name.clone(), value.map_err(wrong)?);
    }
    Ok(values)
}

/// Checks that an expression over the result of a step can be read.
///
/// # Errors
/// When it cannot, or does not use the result.
pub fn check_result_expression(text: &str) -> Result<(), String> {
    read_result(text).map(|_| ())
}

fn read_result(text: &str) -> Result<Expression, String> {
    let expression = Expression::parse(text).map_err(|failure| failure.to_string())?;
    if !expression.names("result") {
        return Err("it must use `result`, the result of the step".to_owned());
    }
    Ok(expression)
}
