//! A JSON reader that is good enough for the corpus's own files, and strict enough to check what is written.

/// A JSON value; numbers as they are written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a text; `None` if it is not JSON, but for a comma too many at an object's end.
    pub(crate) fn read(text: &str) -> Option<Json> {
        let mut rest = text;
        let value = Json::value(&mut rest)?;
        rest.trim_start().is_empty().then_some(value)
    }

    /// The field of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Json::String(text) = self { Some(text) } else { None }
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> &[Json] {
        if let Json::Array(elements) = self { elements } else { &[] }
    }

    fn value(rest: &mut &str) -> Option<Json> {
        *rest = rest.trim_start();
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if eat(rest, word) {
                return Some(value);
            }
        }
        match rest.chars().next()? {
            '"' => Json::string(rest).map(Json::String),
            '[' => {
                let mut elements = Vec::new();
                eat(rest, "[");
                while !eat(rest, "]") {
                    if !elements.is_empty() && !eat(rest, ",") {
                        return None;
                    }
                    elements.push(Json::value(rest)?);
                }
                Some(Json::Array(elements))
            }
            '{' => {
                let mut fields = Vec::new();
                eat(rest, "{");
                while !eat(rest, "}") {
                    if !fields.is_empty() && !eat(rest, ",") {
                        return None;
                    }
                    if eat(rest, "}") {
                        break;
                    }
                    let name = Json::string(rest)?;
                    if !eat(rest, ":") {
                        return None;
                    }
                    fields.push((name, Json::value(rest)?));
                }
                Some(Json::Object(fields))
            }
            _ => {
                let end = rest.find(|c: char| !"+-.0123456789eE".contains(c)).unwrap_or(rest.len());
                let (number, after) = rest.split_at(end);
                number.parse::<f64>().ok()?;
                *rest = after;
                Some(Json::Number(number.to_string()))
            }
        }
    }

    fn string(rest: &mut &str) -> Option<String> {
        if !eat(rest, "\"") {
            return None;
        }
        let mut units: Vec<u16> = Vec::new();
        let mut chars = rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => units.push(match chars.next()? {
                    'n' => 10,
                    'r' => 13,
                    't' => 9,
                    'b' => 8,
                    'f' => 12,
                    'u' => {
                        let digits: String = chars.by_ref().take(4).collect();
                        u16::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?
                    }
                    c @ ('"' | '\\' | '/') => c as u16,
                    _ => return None,
                }),
                c if c < ' ' => return None,
                c => units.extend(c.encode_utf16(&mut [0; 2]).iter()),
            }
        }
        *rest = chars.as_str();
        String::from_utf16(&units).ok()
    }
}

/// Takes a word off the text's start, if it is there, and white space before it.
fn eat(rest: &mut &str, word: &str) -> bool {
    match rest.trim_start().strip_prefix(word) {
        Some(after) => {
            *rest = after;
            true
        }
        None => false,
    }
}
