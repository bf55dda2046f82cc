//! Which columns a footer is read for, and which fields of its schema these are.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Error;

/// The columns that a footer is read for, by the paths of their fields: a field's name, and the names of the groups
/// around it before it, joined with dots.
///
/// A path leads to a field, which is read with everything in it, and with as much of the groups around it as leads
/// there. Only plain groups are cut: a list, a map, a VARIANT, or any other group that is annotated or repeated, is
/// read completely if a path leads into it, and the rest of the path is not looked at. So `items.price` is good enough
/// for a list `items` of groups with a field `price`.
///
/// Every field that a path may mean is read:
///
/// * Upper and lower case are the same, in ASCII. Where two fields differ in nothing else, both are read.
/// * So are fields of the same name. A name that only a number makes
///   [unique](crate::schema::Schema::with_unique_names), such as `a#2`, means all fields called `a`, unless a field is
///   really called `a#2`.
/// * Dots in names are like those between them.
///
/// ```
/// use marquetry_parquet::format::FooterColumns;
///
/// let columns = FooterColumns::new(["id", "address.city"]);
/// assert_eq!(columns.len(), 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct FooterColumns {
    /// By their folded paths, each once.
    wanted: Arc<[Wanted]>,
    allows_missing: bool,
}

/// A path that is wanted.
#[derive(Debug, Clone)]
struct Wanted {
    /// In lower case.
    folded: Vec<u8>,
    given: String,
}

impl FooterColumns {
    /// The fields that these paths lead to.
    ///
    /// This is planning work, in one call: the paths are sorted.
    pub fn new<P: Into<String>>(paths: impl IntoIterator<Item = P>) -> FooterColumns {
        let wanted = paths.into_iter().map(|path| {
            let given: String = path.into();
            Wanted { folded: folded(given.as_bytes()).collect(), given }
        });
        FooterColumns { wanted: sorted(wanted.collect()).into(), allows_missing: false }
    }

    /// Paths that lead nowhere are no error; there is just nothing of them in the metadata. What a locator lacks leads nowhere, too.
    #[must_use]
    pub fn allow_missing(mut self) -> FooterColumns {
        self.allows_missing = true;
        self
    }

    /// The number of paths, each counted once.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// True if there is no path: nothing is read but what the file has besides columns.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The paths, in lower case and in order.
    pub(crate) fn folded(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.wanted.iter().map(|wanted| wanted.folded.as_slice())
    }
}

/// How much of a field is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Keep {
    /// Nothing.
    Nothing,
    /// Of a group, some of what is in it.
    Part,
    /// Everything.
    Whole,
}

/// Decides which fields of a schema are wanted, field by field, depth-first.
///
/// ```text
/// look(name, is_group)    each field, but for those in a group of which nothing is wanted
/// keep_whole()            if it is a group that cannot be cut
/// open()                  if it is a group
/// close(depth)            where groups end: so many are open, the root among them
/// ```
#[derive(Debug)]
pub(crate) struct Chooser {
    columns: FooterColumns,
    matchers: Vec<Matcher>,
}

/// Compares names with some of the paths.
#[derive(Debug)]
struct Matcher {
    wanted: Arc<[Wanted]>,
    is_found: Vec<bool>,
    /// Numbers at the end of names do not count.
    strips: bool,
    open: Vec<Open>,
    /// What was looked at last, should it be opened.
    last: Open,
}

/// A group that is open.
#[derive(Debug, Clone, Default)]
struct Open {
    /// The paths that lead into it, and the bytes of each that lead to it.
    paths: Range<usize>,
    bytes: usize,
    is_whole: bool,
}

impl Chooser {
    /// Nothing is looked at yet; the root is open.
    pub(crate) fn new(columns: FooterColumns) -> Chooser {
        let matchers = alloc::vec![Matcher::new(Arc::clone(&columns.wanted), false)];
        Chooser { columns, matchers }
    }

    /// How much of the next field is read, and what it costs to find out: bytes that were compared.
    pub(crate) fn look(&mut self, name: &[u8], is_group: bool) -> Keep {
        let each = self.matchers.iter_mut().map(|matcher| matcher.look(name, is_group));
        each.max().unwrap_or(Keep::Nothing)
    }

    /// All of the field that was looked at last is read, because it cannot be cut.
    pub(crate) fn keep_whole(&mut self) {
        for matcher in &mut self.matchers {
            matcher.find(matcher.last.paths.clone());
            matcher.last.is_whole = true;
        }
    }

    /// The next field is in the one that was looked at last.
    pub(crate) fn open(&mut self) {
        for matcher in &mut self.matchers {
            matcher.open.push(matcher.last.clone());
        }
    }

    /// So many groups stay open.
    pub(crate) fn close(&mut self, depth: usize) {
        self.matchers.iter_mut().for_each(|matcher| matcher.open.truncate(depth));
    }

    /// Once all fields were looked at: one that looks again, for names with a number that were not found, without it.
    /// `None` if there are none, or it is this one.
    pub(crate) fn again(&self) -> Option<Chooser> {
        let [only] = self.matchers.as_slice() else { return None };
        let is_numbered = |(wanted, is_found): &(&Wanted, &bool)| {
            !**is_found && stripped(wanted.given.as_bytes()).len() < wanted.given.len()
        };
        let of = |numbered: bool| {
            let each = only.wanted.iter().zip(&only.is_found);
            each.filter(move |it| is_numbered(it) == numbered).map(|(wanted, _)| wanted.clone())
        };
        let without = of(true).map(|it| Wanted { folded: stripped(&it.folded), given: it.given });
        let without = sorted(without.collect());
        if without.is_empty() {
            return None;
        }
        let matchers =
            alloc::vec![Matcher::new(of(false).collect(), false), Matcher::new(without.into(), true)];
        Some(Chooser { columns: self.columns.clone(), matchers })
    }

    /// Whether all paths led to fields, as far as that matters.
    pub(crate) fn has_all(&self) -> bool {
        self.columns.allows_missing || self.missing().next().is_none()
    }

    fn missing(&self) -> impl Iterator<Item = &str> {
        self.matchers.iter().flat_map(|matcher| {
            let each = matcher.wanted.iter().zip(&matcher.is_found);
            each.filter(|(_, is_found)| !**is_found).map(|(wanted, _)| wanted.given.as_str())
        })
    }

    /// Checks that all paths led to fields, once all fields were looked at.
    ///
    /// # Errors
    ///
    /// `Misuse` that names those that did not, or the first of them.
    pub(crate) fn check(&self) -> Result<(), Error> {
        /// Names that an error lists.
        const LISTED: usize = 5;
        if self.has_all() {
            return Ok(());
        }
        let mut text = String::new();
        for name in self.missing().take(LISTED) {
            text.push_str(if text.is_empty() { "" } else { ", " });
            text.push_str(&format!("{name:?}"));
        }
        let others = self.missing().count().saturating_sub(LISTED);
        if others > 0 {
            text.push_str(&format!(" and {others} others"));
        }
        let error = Error::misuse(format!("the file has no column {text}"));
        Err(error.at(|place| place.column = self.missing().next().map(String::from)))
    }
}

impl Matcher {
    fn new(wanted: Arc<[Wanted]>, strips: bool) -> Matcher {
        let (all, is_found) = (0..wanted.len(), alloc::vec![false; wanted.len()]);
        let root = Open { paths: all, bytes: 0, is_whole: false };
        Matcher { wanted, is_found, strips, open: alloc::vec![root], last: Open::default() }
    }

    fn look(&mut self, name: &[u8], is_group: bool) -> Keep {
        let Some(Open { paths, bytes, is_whole }) = self.open.last().cloned() else { return Keep::Nothing };
        self.last = Open { paths: 0..0, bytes, is_whole };
        if is_whole {
            return Keep::Whole;
        }
        if paths.is_empty() {
            return Keep::Nothing;
        }
        let short;
        let name = if self.strips {
            short = stripped(name);
            short.as_slice()
        } else {
            name
        };
        let inside = self.wanted.get(paths.clone()).unwrap_or_default();
        let tail =
            |at: usize| inside.get(at).and_then(|wanted| wanted.folded.get(bytes..)).unwrap_or_default();
        // Whatever begins with the name comes first of what does not come before it.
        let first = inside.partition_point(|wanted| {
            let tail = wanted.folded.get(bytes..).unwrap_or_default();
            tail.iter().copied().lt(folded(name))
        });
        let begins = |at: usize| {
            let tail = tail(at);
            tail.len() >= name.len()
                && tail.iter().copied().zip(folded(name)).all(|(one, other)| one == other)
        };
        if first == inside.len() || !begins(first) {
            return Keep::Nothing;
        }
        let is_it = tail(first).len() == name.len();
        // The paths into it go on with a dot.
        let same = inside.partition_point(|wanted| {
            let tail = wanted.folded.get(bytes..).unwrap_or_default();
            tail.iter().copied().lt(folded(name).chain([b'.']))
        });
        // The character after a dot.
        let beyond = inside.partition_point(|wanted| {
            let tail = wanted.folded.get(bytes..).unwrap_or_default();
            tail.iter().copied().lt(folded(name).chain([b'/']))
        });
        let into = paths.start + same..paths.start + beyond;
        if is_it {
            self.find(paths.start + first..paths.start + first + 1);
            self.find(into);
            self.last.is_whole = true;
            return Keep::Whole;
        }
        if !is_group || into.is_empty() {
            return Keep::Nothing;
        }
        self.last = Open { paths: into, bytes: bytes + name.len() + 1, is_whole: false };
        Keep::Part
    }

    fn find(&mut self, paths: Range<usize>) {
        self.is_found.get_mut(paths).into_iter().flatten().for_each(|is_found| *is_found = true);
    }
}

/// Sorts by path, and keeps one of each.
fn sorted(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
    wanted.sort_unstable_by(|one, other| one.folded.cmp(&other.folded));
    wanted.dedup_by(|one, other| one.folded == other.folded);
    wanted
}

/// A name in lower case.
fn folded(name: &[u8]) -> impl Iterator<Item = u8> {
    name.iter().map(u8::to_ascii_lowercase)
}

/// A path without the numbers that its names may end in.
fn stripped(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for (at, mut name) in path.split(|byte| *byte == b'.').enumerate() {
        while let Some(sign) = name.iter().rposition(|byte| *byte == b'#')
            && let Some((short, [_, number @ ..])) = name.split_at_checked(sign)
            && !number.is_empty()
            && number.iter().all(u8::is_ascii_digit)
        {
            name = short;
        }
        out.extend((at > 0).then_some(b'.'));
        out.extend(name);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(chooser: &mut Chooser, name: &str, is_group: bool) -> Keep {
        chooser.look(name.as_bytes(), is_group)
    }

    #[test]
    fn names_paths_and_cases() {
        let columns =
            FooterColumns::new(["b", "A", "a", "s.x.y", "s-x", "s.x.z", "s.w", "t.u", "a.b.c", "x.y"]);
        assert_eq!((columns.len(), columns.is_empty()), (9, false));
        let mut chooser = Chooser::new(columns);
        for (name, is_group, keep) in [
            ("", false, Keep::Nothing),
            ("A", false, Keep::Whole),
            ("B", true, Keep::Whole),
            ("ab", false, Keep::Nothing),
            ("s", false, Keep::Nothing),
            ("S-X", false, Keep::Whole),
            ("X.y", false, Keep::Whole),
            ("zz", true, Keep::Nothing),
            ("s", true, Keep::Part),
        ] {
            assert_eq!(look(&mut chooser, name, is_group), keep, "{name}");
        }
        chooser.open();
        assert_eq!(look(&mut chooser, "y", false), Keep::Nothing);
        assert_eq!(look(&mut chooser, "w", false), Keep::Whole);
        assert_eq!(look(&mut chooser, "X", true), Keep::Part);
        chooser.open();
        assert_eq!(look(&mut chooser, "y", false), Keep::Whole);
        assert_eq!(chooser.missing().collect::<Vec<_>>(), ["s.x.z", "t.u"]);
        chooser.close(2);
        assert_eq!(look(&mut chooser, "X.Z", false), Keep::Whole, "a dot in a name");
        chooser.close(1);
        assert_eq!(look(&mut chooser, "t", true), Keep::Part);
        chooser.keep_whole();
        chooser.open();
        assert_eq!(look(&mut chooser, "anything", true), Keep::Whole);
        chooser.open();
        assert_eq!(look(&mut chooser, "in it", false), Keep::Whole);
        assert!(chooser.check().is_ok() && chooser.again().is_none());
    }

    #[test]
    fn a_numbered_name_is_looked_for_again() {
        let mut chooser = Chooser::new(FooterColumns::new(["a#2", "b#7", "g#2.x#10", "c"]));
        for name in ["a", "a", "c", "b#7"] {
            look(&mut chooser, name, false);
        }
        look(&mut chooser, "g", true);
        let error = chooser.check().unwrap_err();
        assert_eq!(error.message(), "the file has no column \"a#2\", \"g#2.x#10\"");
        assert_eq!(error.place().column.as_deref(), Some("a#2"));
        let mut again = chooser.again().unwrap();
        for (name, keep) in
            [("a", Keep::Whole), ("A#5", Keep::Whole), ("b#7", Keep::Whole), ("b", Keep::Nothing)]
        {
            assert_eq!(look(&mut again, name, false), keep, "{name}");
        }
        for name in ["g", "g#1"] {
            assert_eq!(look(&mut again, name, true), Keep::Part);
            again.open();
            assert_eq!(look(&mut again, "x#2", false), Keep::Whole);
            again.close(1);
        }
        assert_eq!(again.check().unwrap_err().message(), "the file has no column \"c\"");
        assert!(again.again().is_none());
        let again = Chooser { columns: again.columns.allow_missing(), ..again };
        assert!(again.check().is_ok());
    }

    #[test]
    fn many_that_are_missing_are_counted() {
        let chooser = Chooser::new(FooterColumns::new((10..20).map(|at| format!("c{at}"))));
        let error = chooser.check().unwrap_err();
        assert_eq!(
            error.message(),
            "the file has no column \"c10\", \"c11\", \"c12\", \"c13\", \"c14\" and 5 others"
        );
    }
}
