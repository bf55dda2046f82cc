//! Rooms: which module of a crate may import which, and that no files import each other in a circle.
//!
//! Both read text, not the compiler's mind: what `use` names, and paths that begin with `crate::`, `super::`, `self::` or the name of a
//! module that the file declares. Tests may import what they like.

use std::collections::{BTreeMap, BTreeSet};

use crate::rust_text::code_only;

/// Where the rooms of [`FLOORS`] are.
const ENGINE: &str = "crates/parquet/src/";

/// The rooms of the engine, the lowest floor first. A room imports from lower floors only.
pub const FLOORS: &[&[&str]] = &[
    &["going", "memory", "scalar"],
    &["growing"],
    &["thrift"],
    &["schema"],
    &["format"],
    &["batch"],
    &["bloom", "encoding", "geometry", "hive", "prune"],
    &["record", "variant"],
    &["print", "read", "write"],
    &["find", "sort"],
];

/// Crates of which no files may import each other in a circle.
pub const WITHOUT_CIRCLES: &[&str] = &[
    "arrow",
    "base",
    "ceph",
    "cli",
    "cluster",
    "codecs",
    "io",
    "kernels",
    "marquetry",
    "parquet",
    "python",
    "rados",
    "scylla",
    "tables",
    "text",
];

/// A module's path from its crate's root: `["read", "page"]`.
type Module = Vec<String>;

/// Imports of a file of the engine from its own floor or a higher one.
pub fn upward(path: &str, text: &str) -> Vec<String> {
    let Some(module) = path.strip_prefix(ENGINE).and_then(module_of) else { return Vec::new() };
    let Some(room) = module.first() else { return Vec::new() };
    let floor_of = |room: &str| FLOORS.iter().position(|floor| floor.contains(&room));
    let Some(floor) = floor_of(room) else {
        return vec![format!("{path}: the room `{room}` has no floor; say in {} which", file!())];
    };
    let rooms: BTreeSet<String> =
        imports(&module, text).into_iter().filter_map(|import| import.path.into_iter().next()).collect();
    rooms
        .iter()
        .filter(|other| *other != room && floor_of(other).is_some_and(|other| other >= floor))
        .map(|other| format!("{path} imports from `{other}`, which is no lower than `{room}`"))
        .collect()
}

/// Circles of the files of one crate, each as the paths of its modules; `folder` is that of its sources.
pub fn circles<'a>(folder: &str, files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let modules: BTreeMap<Module, &str> = files
        .filter_map(|(path, text)| Some((path.strip_prefix(folder).and_then(module_of)?, text)))
        .collect();
    let found: BTreeMap<&Module, Vec<Import>> =
        modules.iter().map(|(module, text)| (module, imports(module, text))).collect();
    let edges: BTreeMap<&Module, BTreeSet<&Module>> = found
        .iter()
        .map(|(module, imports)| {
            let to = imports.iter().filter_map(|import| {
                let to = definition(&import.path, &found, 0)?;
                // A module hands on what its own parts define: that is its face, no use of them.
                let is_face = import.is_public && to.starts_with(module);
                (to != *module && !is_face).then_some(to)
            });
            (*module, to.collect())
        })
        .collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        edges.keys().map(|module| (*module, reached_from(module, &edges))).collect();
    let circle = |module: &Module| -> Vec<&Module> {
        reached[module].iter().copied().filter(|other| reached[other].contains(module)).collect()
    };
    let all: BTreeSet<Vec<&Module>> =
        edges.keys().map(|module| circle(module)).filter(|members| !members.is_empty()).collect();
    all.into_iter()
        .map(|members| {
            let names: Vec<String> = members.iter().map(|module| module.join("::")).collect();
            format!("{folder} has files that import each other in a circle: {}", names.join(", "))
        })
        .collect()
}

/// The modules that one reaches by its imports, those of what it imports, and so on.
fn reached_from<'a>(
    from: &'a Module,
    edges: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(next) = left.pop() {
        left.extend(edges[next].iter().copied().filter(|to| seen.insert(*to)));
    }
    seen
}

/// The module of a file below `src/`; `None` for tests.
fn module_of(path: &str) -> Option<Module> {
    let mut module: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.iter().any(|part| part == "tests") {
        return None;
    }
    if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        module.pop();
    }
    Some(module)
}

/// Something that a file imports from its own crate.
#[derive(Debug, PartialEq, Eq)]
struct Import {
    /// From the crate's root on.
    path: Module,
    /// Whether it is handed on.
    is_public: bool,
}

/// What a module imports from its own crate, in `use`s and in paths.
fn imports(module: &[String], text: &str) -> Vec<Import> {
    let code = without_tests(&code_only(text));
    let mut found = Vec::new();
    let mut rest = code.clone();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '#') {
            continue;
        }
        let Some(length) = code[at..].find(';') else { continue };
        let line = code[..at].rfind(['\n', ';', '}', '{']).map_or(0, |end| end + 1);
        let is_public = code[line..at].contains("pub");
        for path in tree(&code[at + 4..at + length]) {
            let begins_here = !matches!(path.first().map(String::as_str), Some("crate" | "super" | "self"));
            // Without a prefix it is another crate, or a module of this one's: that is seen by who defines it.
            let path = if begins_here { [&["self".to_owned()][..], &path].concat() } else { path };
            found.extend(absolute(module, &path).map(|path| Import { path, is_public }));
        }
        rest.replace_range(at..at + length, &" ".repeat(length));
    }
    let parts = declared(&code).into_iter().map(|part| format!("{part}::"));
    for prefix in ["crate::", "super::", "self::"].map(str::to_owned).into_iter().chain(parts) {
        for (at, _) in rest.match_indices(&prefix) {
            if rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let end = rest[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path: Module = rest[at..]
                .split_at(end.unwrap_or(rest.len() - at))
                .0
                .split("::")
                .map(str::to_owned)
                .collect();
            found.extend(absolute(module, &path).map(|path| Import { path, is_public: false }));
        }
    }
    found
}

/// The parts that a file declares as modules of their own: paths begin with their names.
fn declared(code: &str) -> Vec<&str> {
    let lines = code.lines().filter_map(|line| line.trim().strip_suffix(';'));
    lines
        .filter_map(|line| {
            let (visibility, name) = line.split_once("mod ")?;
            (visibility.is_empty() || visibility.starts_with("pub")).then_some(name)
        })
        .collect()
}

/// A path from the crate's root; `None` where it leads out of the crate.
fn absolute(module: &[String], path: &[String]) -> Option<Module> {
    let mut base = module.to_vec();
    let mut rest = path;
    while let Some((first, after)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()?),
            "self" => {}
            _ => break,
        }
        rest = after;
    }
    base.extend(rest.iter().filter(|part| !part.is_empty() && *part != "*" && *part != "self").cloned());
    Some(base)
}

/// The paths of a `use`, without what they are called here.
fn tree(text: &str) -> Vec<Module> {
    let text = text.trim();
    let Some(open) = text.find('{') else {
        let path = text.split(" as ").next().unwrap_or(text);
        return vec![path.split("::").map(|part| part.trim().to_owned()).collect()];
    };
    let prefix: Module =
        text[..open].split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
    let inside = text[open + 1..].trim_end().strip_suffix('}').unwrap_or(&text[open + 1..]);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inside.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(tree).map(|part| [&prefix[..], &part].concat()).collect()
}

/// The module that defines what a path names: modules hand on what others define.
fn definition<'a>(
    path: &[String],
    found: &BTreeMap<&'a Module, Vec<Import>>,
    depth: usize,
) -> Option<&'a Module> {
    /// A name is handed on a few times; more is a circle of names, which the compiler refuses.
    const DEPTH_MAX: usize = 8;
    let length = (0..=path.len()).rev().find(|&length| found.contains_key(&path[..length].to_vec()))?;
    let (module, imports) = found.get_key_value(&path[..length].to_vec())?;
    let name = path.get(length);
    let handed_on = imports.iter().find(|import| import.is_public && import.path.last() == name);
    match (name, handed_on) {
        (Some(_), Some(import)) if depth < DEPTH_MAX && import.path != path => {
            let rest = &path[length + 1..];
            definition(&[&import.path[..], rest].concat(), found, depth + 1)
        }
        _ => Some(module),
    }
}

/// Code without the modules that are tests.
fn without_tests(code: &str) -> String {
    let mut left = code.to_owned();
    while let Some(at) = left.find("#[cfg(test)]") {
        let after = left[at..].find(['{', ';']).map_or(left.len(), |found| at + found);
        let mut depth = 0;
        let end = left[after..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let end = end.map_or(left.len(), |(found, c)| after + found + c.len_utf8());
        left.replace_range(at..end, "");
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [&str; 0] = [];

    #[test]
    fn imports_from_higher_rooms_are_found() {
        let up = |text: &str| upward("crates/parquet/src/encoding/plain/encode.rs", text);
        assert_eq!(up("use crate::batch::Values;\nuse super::super::stream::Stream;"), NONE);
        assert_eq!(
            up("use crate::write::encoder::Slice;"),
            [
                "crates/parquet/src/encoding/plain/encode.rs imports from `write`, which is no lower than `encoding`"
            ]
        );
        assert_eq!(up("use crate::{batch::Values, read::{self, page}};").len(), 1);
        assert_eq!(up("use super::super::super::read::page::Next;").len(), 1);
        assert_eq!(up("fn f() {\n    crate::sort::Sorter::new();\n}").len(), 1);
        // One on the same floor is a neighbour, and no lower.
        assert_eq!(up("pub(crate) use crate::bloom::hash;").len(), 1);
    }

    #[test]
    fn comments_and_tests_may_name_what_they_like() {
        let text = "//! See [`read`](crate::read).\n// use crate::write::X;\nfn f() {}\n\
                    #[cfg(test)]\nmod tests {\n    use crate::read::BatchReader;\n    fn g() { {} }\n}\n";
        assert_eq!(upward("crates/parquet/src/schema/shape.rs", text), NONE);
        assert_eq!(upward("crates/parquet/src/schema/union/tests.rs", "use crate::read::Conform;"), NONE);
        assert_eq!(
            upward("crates/parquet/src/schema/shape.rs", &format!("{text}use crate::read::X;")).len(),
            1
        );
        assert_eq!(upward("crates/arrow/src/schema.rs", "use crate::read::X;"), NONE);
        assert_eq!(upward("crates/parquet/src/lib.rs", "pub use crate::read::X;"), NONE);
    }

    #[test]
    fn a_room_without_a_floor_is_found() {
        assert_eq!(upward("crates/parquet/src/attic/mod.rs", "").len(), 1);
        assert_eq!(upward("crates/parquet/src/attic.rs", "").len(), 1);
    }

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        circles("src/", files.iter().copied())
    }

    #[test]
    fn circles_are_found() {
        assert_eq!(
            circles_of(&[
                ("src/lib.rs", ""),
                ("src/a.rs", "use crate::b::B;"),
                ("src/b.rs", "use super::a::A;")
            ]),
            ["src/ has files that import each other in a circle: a, b"]
        );
        // Through a third, and through a name that a module hands on.
        let files = [
            ("src/a/mod.rs", "mod x;\nmod y;\npub use x::X;\npub(crate) use y::{Y, Z as W};"),
            ("src/a/x.rs", "use crate::b::B;"),
            ("src/a/y.rs", "struct Y;"),
            ("src/b.rs", "use crate::c::C;"),
            ("src/c.rs", "fn c() {\n    let x = crate::a::X::new();\n}"),
        ];
        assert_eq!(circles_of(&files), ["src/ has files that import each other in a circle: a::x, b, c"]);
        let other =
            files.map(|(path, text)| (path, if path == "src/c.rs" { "use crate::a::Y;" } else { text }));
        assert_eq!(circles_of(&other), NONE);
    }

    #[test]
    fn a_module_and_its_parent_are_a_circle_if_both_use_the_other() {
        let child = ("src/a/x.rs", "use super::LIMIT;");
        assert_eq!(circles_of(&[("src/a/mod.rs", "mod x;\npub use x::X;"), child]), NONE);
        assert_eq!(circles_of(&[("src/a.rs", "mod x;\nuse x::X;"), child]).len(), 1);
        assert_eq!(circles_of(&[("src/a.rs", "mod x;\nuse self::x::{X, Y};"), child]).len(), 1);
        assert_eq!(circles_of(&[("src/a.rs", "mod x;\nuse std::fmt;"), child]), NONE);
        // A part is used without `use`, too.
        for body in ["x::f();", "let x: Vec<x::X> = Vec::new();", "self::x::f();"] {
            assert_eq!(circles_of(&[("src/a.rs", &format!("mod x;\nfn f() {{ {body} }}")), child]).len(), 1);
        }
        assert_eq!(circles_of(&[("src/a.rs", "mod x;\nfn f() { max::f(); y::x::f(); }"), child]), NONE);
    }
}
