//! Words: prose avoids the phrases for which the glossary of CONTRIBUTING.md has others.

/// Phrases, in lower case, and what to write instead. Only those that are wrong in every sentence are here.
const PHRASES: &[(&str, &str)] = &[
    ("be had", "allocated"),
    ("has not got", "lacks"),
    ("is had", "allocated"),
    ("is told", "reported, given, named"),
    ("let go of", "released, freed, dropped"),
    ("lets go of", "releases, frees, drops"),
    ("says that it cannot", "fails, returns an error"),
    ("shall", "must, will"),
    ("was told", "was given, was created with"),
];

/// Phrases to avoid in a file that people read: comments of `crates/*/src`, and documents.
///
/// Measurements in `docs/bench` are written by programs. Comments that follow code on its line are not looked at.
pub fn phrases(path: &str, text: &str) -> Vec<String> {
    let is_source = path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs");
    let is_document = path.ends_with(".md") && (path.starts_with("docs/") || !path.contains('/'));
    // The glossary lists them.
    let is_exempt = path.starts_with("docs/bench/") || path == "CONTRIBUTING.md";
    if is_exempt || !(is_source || is_document) {
        return Vec::new();
    }
    // All words, with one space after each, so that a phrase may continue on the next line; and where lines begin.
    let (mut prose, mut lines) = (String::new(), Vec::new());
    for line in text.lines() {
        lines.push(prose.len());
        let line = line.trim();
        let words = if is_document { Some(line) } else { line.strip_prefix("//") };
        let words = words.unwrap_or_default().trim_start_matches(['/', '!']);
        for word in words.split_whitespace() {
            prose.push_str(&word.to_lowercase());
            prose.push(' ');
        }
        // Code and empty lines end a sentence.
        if words.trim().is_empty() {
            prose.push('\n');
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut faults = Vec::new();
    for (phrase, instead) in PHRASES {
        for (at, _) in prose.match_indices(phrase) {
            let (before, after) = (&prose[..at], &prose[at + phrase.len()..]);
            if !before.ends_with(is_part) && !after.starts_with(is_part) {
                let line = lines.partition_point(|start| *start <= at);
                faults.push(format!("{path}:{line}: `{phrase}`; write: {instead}"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn phrases_in_comments_are_found() {
        let text = "//! Memory is had at once.\n\nfn f() {\n    // The host Lets\n    // go of it.\n}\n";
        assert_eq!(
            phrases("crates/base/src/lib.rs", text),
            [
                "crates/base/src/lib.rs:1: `is had`; write: allocated",
                "crates/base/src/lib.rs:4: `lets go of`; write: releases, frees, drops",
            ]
        );
        assert_eq!(phrases("crates/base/tests/all.rs", text), NONE);
    }

    #[test]
    fn phrases_are_whole_words_of_one_sentence() {
        let text = "// This hadn't\nlet text = \"it shall be had\";\n// is\n\n// told marshalling\n";
        assert_eq!(phrases("crates/base/src/lib.rs", text), NONE);
    }

    #[test]
    fn phrases_in_documents_are_found() {
        assert_eq!(phrases("docs/ROADMAP.md", "A file\n\nshall fail.\n").len(), 1);
        assert_eq!(phrases("README.md", "* a file that lets\n  go of it\n").len(), 1);
        assert_eq!(phrases("CONTRIBUTING.md", "| must | shall |\n"), NONE);
        assert_eq!(phrases("docs/bench/read.md", "It was told.\n"), NONE);
        assert_eq!(phrases("dev/bench/README.md", "It was told.\n"), NONE);
    }
}
