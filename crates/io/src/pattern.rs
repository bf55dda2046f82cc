//! Which paths are patterns.

use std::path::Path;

/// Characters that make a pattern.
pub(crate) const SPECIAL: [char; 4] = ['*', '?', '[', '{'];

pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.contains(SPECIAL))
}
