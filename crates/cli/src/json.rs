//! JSON of what derives its form, harmless wherever it is printed.

use std::io;

use marquetry::base::print::json;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Appends a value as JSON on one line. In strings everything harmful to a terminal is escaped, which readers of JSON take for
/// the same; JSON itself only wants some of it escaped.
pub(crate) fn write(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut Serializer::with_formatter(out, Harmless))
}

struct Harmless;

impl Formatter for Harmless {
    /// What stands between the escapes that JSON wants.
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut escaped = fragment.as_bytes().to_vec();
        json::escape_harmful(&mut escaped, 0);
        out.write_all(&escaped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmful_characters_are_escaped_and_read_back() {
        let text = "é\x1b[0m \u{7f}\u{9b}31m\u{202e} \u{e0041} \"\\\n 👨\u{200d}👩";
        let (mut out, mut ours) = (Vec::new(), Vec::new());
        write(&mut out, text).unwrap();
        let written = std::str::from_utf8(&out).unwrap();
        assert_eq!(serde_json::from_str::<String>(written).unwrap(), text);
        json::string(&mut ours, text);
        assert_eq!(ours, out, "the library writes the same");
    }
}
