//! A store that refuses what belongs to another one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_io::store::{
    Found, IsCancelled, NewObject, NewObjects, ObjectStream, Search, Searching, Store,
};
use marquetry_io::{ByteSource, ObjectVersion};
use marquetry_tables::Address;

use super::Features;

/// A store, without the addresses of stores that are left out.
#[derive(Debug, Clone)]
pub(crate) struct Refusing {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) features: Features,
}

impl Refusing {
    /// The store, if it may be asked for this path.
    fn of(&self, path: &Path) -> Result<&dyn Store> {
        self.features.refused(&Address::parse(path)).map_or(Ok(&*self.store), Err)
    }
}

impl Store for Refusing {
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let store = self.store.cancellable(is_cancelled)?;
        Some(Arc::new(Refusing { store, features: self.features }))
    }

    fn holds_parquet(&self) -> bool {
        self.store.holds_parquet()
    }

    fn look(&self, path: &Path) -> Result<Found> {
        self.of(path)?.look(path)
    }

    fn is_collective(&self, path: &Path) -> bool {
        self.of(path).is_ok_and(|store| store.is_collective(path))
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        self.of(path)?.find(path, extensions)
    }

    fn list(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        self.of(directory)?.list(directory)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        self.of(path)?.open(path)
    }

    fn reopen(&self, path: &Path, version: &ObjectVersion) -> Result<Box<dyn ByteSource + Send>> {
        self.of(path)?.reopen(path, version)
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        self.of(path)?.stream(path, is_cancelled)
    }

    fn searches(&self, path: &Path) -> Option<Result<()>> {
        self.of(path).ok()?.searches(path)
    }

    fn search(&self, search: Search, is_cancelled: IsCancelled) -> Result<Box<dyn Searching>> {
        self.store.search(search, is_cancelled)
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        self.of(path)?.create(path, replaces)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.of(path)?.remove(path)
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        self.of(path)?.create_directory(path, replaces, extensions)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::NONE;
    use super::*;

    use marquetry_base::{Detail, Error};
    use marquetry_io::store::LocalFiles;

    /// Otherwise it would be a file of that name that is missing.
    #[test]
    fn objects_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.parquet");
        std::fs::write(&file, "PAR1").unwrap();
        let store = Refusing { store: Arc::new(LocalFiles), features: NONE };
        assert_eq!(store.look(&file).unwrap(), Found::Object { bytes: 4 });
        assert!(store.is_collective(folder.path()) && !store.is_collective(&file));
        assert_eq!(store.find(folder.path(), &["parquet"]).unwrap(), [file]);
        for (path, feature) in [("s3://b/*.parquet", "object-store"), ("rados://p/d/", "rados")] {
            let path = Path::new(path);
            let refused = |error: Error| {
                assert_eq!(error.detail(), Some(Detail::Feature(feature)), "{error}");
            };
            refused(store.look(path).unwrap_err());
            refused(store.find(path, &["parquet"]).unwrap_err());
            refused(store.list(path).unwrap_err());
            refused(store.open(path).map(drop).unwrap_err());
            refused(store.stream(path, Box::new(|| false)).map(drop).unwrap_err());
            refused(store.create(path, true).map(drop).unwrap_err());
            refused(store.remove(path).unwrap_err());
            refused(store.create_directory(path, true, &["parquet"]).map(drop).unwrap_err());
            assert!(!store.is_collective(path) && store.searches(path).is_none());
        }
    }
}
