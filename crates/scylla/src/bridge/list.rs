//! Names in messages.

use alloc::string::{String, ToString};
use core::fmt::Display;

/// Names in a message, not too many.
pub(super) fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    const NAMES_MAX: usize = 20;
    let mut text = String::new();
    for (at, name) in names.into_iter().enumerate() {
        if at == NAMES_MAX {
            text.push_str(", …");
            break;
        }
        text.push_str(if at == 0 { "" } else { ", " });
        text.push_str(&name.to_string());
    }
    if text.is_empty() { "none".to_string() } else { text }
}
