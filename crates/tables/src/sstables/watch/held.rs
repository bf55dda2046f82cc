//! The links of several data directories: those of each are on its own file system.

use std::path::PathBuf;

use marquetry_base::{Error, Result};

use super::directory::Seen;
use super::links::{Linked, Linking, Links, SstableId};
use super::options::WatchOptions;
use super::tables::TableDirectory;

/// The directories of links, and which is whose.
#[derive(Debug)]
pub(super) struct AllLinks {
    links: Vec<Links>,
    /// Data directories, and the numbers of their links.
    of: Vec<(PathBuf, usize)>,
    /// The directories for work.
    works: Vec<PathBuf>,
}

impl AllLinks {
    pub(super) fn new(options: &WatchOptions) -> AllLinks {
        let (mut links, mut roots, mut of) = (Vec::new(), Vec::new(), Vec::new());
        for data in options.directories() {
            let root = options.work_of(data).join("links");
            let known = roots.iter().position(|known| *known == root);
            of.push((data.clone(), known.unwrap_or(roots.len())));
            if known.is_none() {
                links.push(Links::new(root.clone(), options.inbox.then(|| data.clone())));
                roots.push(root);
            }
        }
        let works = options.directories().map(|data| options.work_of(data)).collect();
        AllLinks { links, of, works }
    }

    /// Whether all directories for work are there: without its own, a data directory may be one that is not mounted any more.
    pub(super) fn are_there(&self) -> bool {
        self.works.iter().all(|work| work.is_dir())
    }

    /// As [`Links::link`].
    ///
    /// # Errors
    ///
    /// Those of [`Links::link`].
    pub(super) fn link(&self, table: &TableDirectory, seen: &Seen) -> Result<Linking> {
        let links = self.links_of(table);
        links.ok_or_else(|| Error::internal("a table of no data directory"))?.link(table, seen)
    }

    /// As [`Links::id_of`].
    pub(super) fn id_of(&self, table: &TableDirectory, seen: &Seen) -> Option<SstableId> {
        self.links_of(table)?.id_of(table, seen)
    }

    fn links_of(&self, table: &TableDirectory) -> Option<&Links> {
        let number =
            self.of.iter().find(|(data, _)| table.path.starts_with(data)).map(|(_, number)| *number)?;
        self.links.get(number)
    }

    /// As [`Links::all`], of all of them.
    ///
    /// # Errors
    ///
    /// Those of [`Links::all`].
    pub(super) fn all(&self) -> Result<Vec<Linked>> {
        let mut all = Vec::new();
        for links in &self.links {
            all.extend(links.all()?);
        }
        Ok(all)
    }
}
