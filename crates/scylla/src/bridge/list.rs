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

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    fn faults(count: usize) -> Faults {
        let mut faults = Faults::default();
        for number in 0..count {
            let column = Some(format!("c{number}"));
            faults.add(Error::conversion("no").at(|place| place.column = column));
        }
        faults
    }

    #[test]
    fn one_is_itself_and_several_are_listed() {
        assert!(faults(0).into_result().is_ok());
        let one = faults(1).into_result().unwrap_err();
        assert_eq!((one.message(), one.place().column.as_deref()), ("no", Some("c0")));
        let mut two = faults(2);
        two.append(faults(1));
        two.add(Error::misuse("the key"));
        let error = two.into_result().unwrap_err();
        assert_eq!(error.to_string(), "no (column c0); no (column c1); no (column c0); the key");
        assert_eq!(error.kind(), ErrorKind::Conversion);
        let mut many = faults(LISTED_MAX + 5);
        many.append(faults(3));
        let error = many.into_result().unwrap_err().to_string();
        assert!(error.ends_with("; no (column c99); and 8 more"), "{error}");
    }
}
