//! Errors: programs decide by an error's kind, detail and place. Its message is for people, and may change.

use crate::rust_text::{attributes, code_only, line_of};

/// Methods by which code looks into a text.
const LOOKS: &[&str] = &[
    "contains(",
    "starts_with(",
    "ends_with(",
    "replace(",
    "find(",
    "rfind(",
    "split",
    "strip_",
    "matches(",
    "trim_",
    "is_empty(",
    "eq(",
];

/// Names that errors have in this workspace.
const ERRORS: &[&str] = &["error", "err", "e", "reason", "cause", "refusal", "failure", "trouble"];

/// Code that decides by what an error's message says, in a Rust file that is neither a test nor a tool of tests.
pub fn decisions(path: &str, text: &str) -> Vec<String> {
    if is_test(path) {
        return Vec::new();
    }
    let code = code_only(text);
    let code = &code[..tests_start(&code)];
    let mut faults = Vec::new();
    for asked in [".message()", ".to_string()"] {
        for (at, _) in code.match_indices(asked) {
            if asked == ".to_string()" && !ERRORS.contains(&last_name(&code[..at])) {
                continue;
            }
            if is_looked_into(&code[at + asked.len()..]) || is_compared(&code[..at]) {
                faults.push(format!(
                    "{path}:{}: decides by an error's message; take its kind, detail or place",
                    line_of(code, at) + 1
                ));
            }
        }
    }
    faults
}

/// Whether what follows a text asks something of it.
fn is_looked_into(after: &str) -> bool {
    let mut after = after.trim_start();
    // What only turns it into another kind of text.
    for step in [".as_str()", ".to_lowercase()", ".to_ascii_lowercase()", ".to_string()", ".to_owned()"] {
        after = after.strip_prefix(step).unwrap_or(after).trim_start();
    }
    let method = after.strip_prefix('.').map(str::trim_start);
    method.is_some_and(|method| LOOKS.iter().any(|name| method.starts_with(name)))
        || after.starts_with("==")
        || after.starts_with("!=")
}

/// Whether what stands before a text compares or matches it: `"…" == error`, `match error`.
fn is_compared(before: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_.()?&*".contains(c);
    let before = before.trim_end_matches(is_name).trim_end();
    before.ends_with("==") || before.ends_with("!=") || last_name(before) == "match"
}

/// The last name of a piece of code.
fn last_name(code: &str) -> &str {
    let start = code.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    &code[start..]
}

/// Tests, and the crates that are made of nothing else.
fn is_test(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    path.starts_with("dev/conformance/")
        || path.starts_with("dev/fuzz/")
        || parts.iter().any(|part| matches!(*part, "tests" | "tests.rs" | "testing.rs"))
}

/// Where a file's own tests start: its end, if it has none.
fn tests_start(code: &str) -> usize {
    let lines: Vec<usize> =
        std::iter::once(0).chain(code.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let test = attributes(code).into_iter().find(|found| {
        let next = lines.get(found.last_line + 1).map_or("", |&at| code[at..].trim_start());
        found.text == "cfg(test)"
            && (next.starts_with("mod ") || next.starts_with("pub mod "))
            && next.find('{') < Some(next.find(';').unwrap_or(usize::MAX))
            && next.contains('{')
    });
    test.and_then(|found| lines.get(found.first_line).copied()).unwrap_or(code.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    fn found(code: &str) -> usize {
        decisions("crates/a/src/b.rs", code).len()
    }

    #[test]
    fn decisions_by_messages_are_found() {
        assert_eq!(found("if error.message().contains(\"support\") {}"), 1);
        assert_eq!(found("if error\n    .message()\n    .starts_with(X) {}"), 1);
        assert_eq!(found("let it = error.to_string().replace(\"a\", \"b\");"), 1);
        assert_eq!(found("if error.kind() == K && error.message() == GONE {}"), 1);
        assert_eq!(found("if GONE != error.message() {}"), 1);
        assert_eq!(found("match error.message() { _ => {} }"), 1);
        assert_eq!(found("match it.error.to_string().as_str() { _ => {} }"), 1);
        assert_eq!(found("error.message().to_lowercase().contains(\"x\")"), 1);
        let place = decisions("crates/a/src/b.rs", "\nif e.to_string().contains(X) {}");
        assert!(place[0].starts_with("crates/a/src/b.rs:2: "), "{place:?}");
    }

    #[test]
    fn what_only_shows_them_is_not() {
        assert_eq!(found("println!(\"{}\", error.message()); let text = error.to_string();"), 0);
        assert_eq!(found("name.to_string().contains(\"x\"); // error.message().contains(\"x\")"), 0);
        assert_eq!(found("match error.kind() { _ => say(error.message()) }"), 0);
        let tests = "fn f() {}\n#[cfg(test)]\nmod tests {\n    assert!(e.message().contains(\"x\"));\n}";
        assert_eq!(found(tests), 0);
        assert_eq!(found(&tests.replace("mod tests {", "mod tests;\nmod other {")), 1);
        assert_eq!(decisions("crates/a/tests/b.rs", "e.message().contains(\"x\")"), NONE);
    }
}
