//! Markdown files: links between them lead somewhere.

use std::collections::BTreeMap;

/// Links of a Markdown file that lead to no file, or to no heading of a Markdown file.
///
/// `text` gives the text of a tracked file by its path from the root (empty for what is not text), and `None` where
/// there is none; folders are known by the files in them, through `is_folder`.
pub fn links<'a>(
    path: &str,
    markdown: &str,
    text: impl Fn(&str) -> Option<&'a str>,
    is_folder: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, target) in targets(markdown) {
        let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
        if has_scheme(file) {
            continue;
        }
        let Some(file) = resolve(path, file) else {
            faults.push(format!("{path}:{line}: `{target}` leads out of the repository"));
            continue;
        };
        let linked = if file == path { Some(markdown) } else { text(&file) };
        match linked {
            None if is_folder(&file) && heading.is_empty() => {}
            None => faults.push(format!("{path}:{line}: `{target}` leads to no file")),
            Some(linked) if file.ends_with(".md") && !heading.is_empty() => {
                if !headings(linked).iter().any(|known| known == heading) {
                    faults.push(format!("{path}:{line}: `{target}` leads to no heading"));
                }
            }
            Some(_) => {}
        }
    }
    faults
}

/// The targets of links and images, `[text](target)` and `[name]: target`, with their lines from 1.
fn targets(markdown: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(markdown) {
        if let Some((label, target)) = line.split_once("]: ")
            && label.starts_with('[')
            && !label.starts_with("[^")
        {
            found.extend(target.split_whitespace().next().map(|target| (number, target.to_owned())));
        }
        for (at, _) in line.match_indices("](") {
            let rest = &line[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            found.push((number, rest[..end].to_owned()));
        }
    }
    for (_, target) in &mut found {
        *target = target.trim_matches(['<', '>']).replace("%20", " ");
    }
    found
}

/// The lines, from 1, that are not in a code block, with code spans blanked.
fn prose(markdown: &str) -> impl Iterator<Item = (usize, String)> {
    let mut fence = None;
    markdown.lines().enumerate().filter_map(move |(number, line)| {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                // Every other piece between backquotes is a code span.
                let pieces = line.split('`').enumerate();
                let text = pieces.map(|(i, piece)| if i % 2 == 0 { piece } else { "x" }).collect::<String>();
                return Some((number + 1, text));
            }
            _ => {}
        }
        None
    })
}

/// The names by which a file's headings are linked to, as GitHub makes them.
fn headings(markdown: &str) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let mut fenced = false;
    let mut names = Vec::new();
    for line in markdown.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if fenced || !line.starts_with('#') || !title.starts_with(' ') {
            continue;
        }
        let name: String = title
            .trim()
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        let count = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(0);
        names.push(if *count == 0 { name } else { format!("{name}-{count}") });
    }
    names
}

fn has_scheme(target: &str) -> bool {
    target.starts_with("//")
        || target
            .split_once(':')
            .is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
}

/// The path from the root that a link of `path` means; `None` where it leads above the root.
fn resolve(path: &str, link: &str) -> Option<String> {
    if link.is_empty() {
        return Some(path.to_owned());
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if link.starts_with('/') {
        parts.clear();
    }
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(markdown: &str) -> Vec<String> {
        let text = |path: &str| match path {
            "docs/DESIGN.md" => Some("# Words, and more\n## Words\n## Words\n"),
            "LICENSE" => Some(""),
            _ => None,
        };
        links("docs/a.md", markdown, text, |path| path.is_empty() || path == "docs")
    }

    #[test]
    fn good_links_pass() {
        let good = "[a](DESIGN.md) [b](../LICENSE \"title\") [c](https://example.org/x) [d](DESIGN.md#words-and-more)\n\
                    # Own heading\n[e](#own-heading) ![f](../docs) [g](/LICENSE) [h](DESIGN.md#words-1)\n\
                    [i]: DESIGN.md\n[^1]: no link\n[j](..)\n";
        assert_eq!(check(good), [""; 0]);
    }

    #[test]
    fn links_in_code_are_text() {
        assert_eq!(check("`[a](gone.md)`\n```text\n[b](gone.md)\n# h\n```\n"), [""; 0]);
    }

    #[test]
    fn broken_links_are_found() {
        for broken in [
            "[a](gone.md)",
            "[a](DESIGN.md#gone)",
            "[a](#gone)",
            "[a]: gone.md",
            "[a](../../x)",
            "`c` [a](gone)",
        ] {
            assert_eq!(check(broken).len(), 1, "{broken}");
        }
    }
}
