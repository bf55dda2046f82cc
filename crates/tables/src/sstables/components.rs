//! The files of an SSTable.

use std::path::PathBuf;

use marquetry_base::Error;
use marquetry_scylla::sstable::{Component, FileName};

use crate::subject::{name_of, renamed};

/// An SSTable's files, all of them there.
#[derive(Debug, Clone)]
pub(super) struct SstableFiles {
    /// Of Data.db; the others differ at its end.
    pub(super) name: FileName,
    pub(super) folder: PathBuf,
    /// The components and their bytes, as TOC.txt lists them.
    pub(super) components: Vec<(Component, u64)>,
}

impl SstableFiles {
    pub(super) fn path(&self, component: &Component) -> PathBuf {
        self.folder.join(self.name.of(component))
    }

    /// The bytes of a component. `None` if there is none.
    pub(super) fn bytes_of(&self, component: &Component) -> Option<u64> {
        self.components.iter().find(|(its, _)| its == component).map(|(_, bytes)| *bytes)
    }

    /// Whether ScyllaDB wrote it, which is not known of its oldest versions.
    pub(super) fn is_of_scylla(&self) -> bool {
        matches!(self.name.version.name(), "ms" | "mt") || self.bytes_of(&Component::Scylla).is_some()
    }

    /// An error, with the path of the component that it is about: machines know the ends of names only.
    pub(super) fn named(&self, error: Error) -> Error {
        let component = match &error.place().object {
            Some(object) => Some(Component::parse(object)).filter(|it| !matches!(it, Component::Other(_))),
            None => Some(Component::Data),
        };
        match component {
            Some(component) => renamed(error, &name_of(&self.path(&component))),
            None => error,
        }
    }

    /// What it is called: the path of its Data.db.
    pub(super) fn shown(&self) -> String {
        name_of(&self.path(&Component::Data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_it() {
        let is_of_scylla = |name: &str, components: &[Component]| {
            let name = FileName::parse(name).unwrap().unwrap();
            let components = components.iter().map(|component| (component.clone(), 1)).collect();
            SstableFiles { name, folder: PathBuf::new(), components }.is_of_scylla()
        };
        assert!(!is_of_scylla("me-1-big-Data.db", &[Component::Data, Component::Statistics]));
        assert!(is_of_scylla("me-1-big-Data.db", &[Component::Data, Component::Scylla]));
        assert!(
            is_of_scylla("ms-1-bti-Data.db", &[Component::Data]) == is_of_scylla("mt-1-bti-Data.db", &[])
        );
        assert!(is_of_scylla("ms-1-bti-Data.db", &[Component::Data]));
        assert!(!is_of_scylla("da-1-bti-Data.db", &[Component::Data]));
    }
}
