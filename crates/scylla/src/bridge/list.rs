//! Names in messages.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;

/// Names in a message, not too many.
pub(super) fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    const NAMES_MAX: usize = 20;
    let mut text = String::new();
    let mut names = names.into_iter().enumerate();
    while let Some((at, name)) = names.next() {
        if at == NAMES_MAX {
            text.push_str(&format!(", and {} more", 1 + names.count()));
            break;
        }
        text.push_str(if at == 0 { "" } else { ", " });
        text.push_str(&name.to_string());
    }
    if text.is_empty() { "none".to_string() } else { text }
}
