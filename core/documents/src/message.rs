//! Messages about values, and their hints.

use crate::value::Value;

/// Separates a message from its hint while both pass through serde, whose errors are text.
pub(crate) const HINT: &str = "\nhint: ";

const LEAVE_OUT: &str = "leave the key out, or give it a value";

/// "Expected …, found …".
pub(crate) fn expected<L, M>(what: &str, found: &Value<L, M>) -> String {
    let message = format!("expected {what}, found {}", found.describe());
    if matches!(found, Value::Null) {
        return with_hint(&message, LEAVE_OUT);
    }
    message
}

/// A message and its hint.
pub(crate) fn with_hint(message: &str, hint: &str) -> String {
    format!("{message}{HINT}{hint}")
}
