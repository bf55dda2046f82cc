//! JSON as far as comparing it takes: numbers stay text.

/// A value.
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
    /// Parses one value.
    pub(crate) fn parse(text: &str) -> Json {
        let mut parser = Parser { rest: text };
        let value = parser.value();
        parser.space();
        assert_eq!(parser.rest, "", "something follows");
        value
    }

    /// Removes members with these names, everywhere.
    pub(crate) fn without(self, names: &[&str]) -> Json {
        match self {
            Json::Array(elements) => Json::Array(elements.into_iter().map(|it| it.without(names)).collect()),
            Json::Object(members) => Json::Object(
                members
                    .into_iter()
                    .filter(|(name, _)| !names.contains(&name.as_str()))
                    .map(|(name, value)| (name, value.without(names)))
                    .collect(),
            ),
            other => other,
        }
    }

    /// Writes it without spaces.
    pub(crate) fn write(&self, text: &mut String) {
        match self {
            Json::Null => text.push_str("null"),
            Json::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => text.push_str(number),
            Json::String(string) => text.push_str(&format!("{string:?}")),
            Json::Array(elements) => {
                text.push('[');
                for (at, element) in elements.iter().enumerate() {
                    text.push_str(if at == 0 { "" } else { "," });
                    element.write(text);
                }
                text.push(']');
            }
            Json::Object(members) => {
                text.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    text.push_str(&format!("{}{name:?}:", if at == 0 { "" } else { "," }));
                    value.write(text);
                }
                text.push('}');
            }
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Json {
        self.space();
        if self.take('{') {
            let mut members = Vec::new();
            while !self.take('}') {
                assert!(members.is_empty() || self.take(','));
                self.space();
                let name = self.string();
                assert!(self.take(':'));
                members.push((name, self.value()));
            }
            return Json::Object(members);
        }
        if self.take('[') {
            let mut elements = Vec::new();
            while !self.take(']') {
                assert!(elements.is_empty() || self.take(','));
                elements.push(self.value());
            }
            return Json::Array(elements);
        }
        if self.rest.starts_with('"') {
            return Json::String(self.string());
        }
        let end = self.rest.find([',', ']', '}', ' ', '\n']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            number => Json::Number(number.to_string()),
        }
    }

    fn string(&mut self) -> String {
        self.rest = self.rest.strip_prefix('"').expect("a string");
        let mut string = String::new();
        let mut letters = self.rest.char_indices();
        loop {
            let (at, letter) = letters.next().expect("the end of a string");
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return string;
                }
                '\\' => match letters.next().expect("an escape").1 {
                    'n' => string.push('\n'),
                    't' => string.push('\t'),
                    'r' => string.push('\r'),
                    'b' => string.push('\u{8}'),
                    'f' => string.push('\u{c}'),
                    'u' => {
                        let digits: String = (0..4).filter_map(|_| letters.next()).map(|it| it.1).collect();
                        let code = u32::from_str_radix(&digits, 16).expect("four digits");
                        string.push(char::from_u32(code).expect("no surrogate"));
                    }
                    other => string.push(other),
                },
                other => string.push(other),
            }
        }
    }
}
