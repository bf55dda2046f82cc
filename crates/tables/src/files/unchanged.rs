//! What tells files from others that have their names and sizes by now.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use marquetry_base::Result;
use marquetry_base::cast::u64_of;
use marquetry_io::ByteSource as _;
use marquetry_io::state_file::checksum;
use marquetry_io::store::Store;

use super::gathered::find;
use super::options::FilesOptions;
use crate::Cancel;
use crate::subject::name_of;

/// Bytes at the beginning and at the end of each file that are looked at: a Parquet file's footer, or the most of it.
const ENDS_BYTES: u64 = 64 << 10;

/// A text that is the same as long as the files that paths name are: their names, sizes and times of modification (of a store's objects, their
/// tags), and what they begin and end with. For work that goes on later with what it began with.
///
/// # Errors
///
/// `Io` for files that are missing or cannot be read, and for pipes.
pub fn unchanged(paths: &[PathBuf], options: &FilesOptions) -> Result<String> {
    of_all(&*options.cancel.of_store(&options.store), &find(paths, options)?, &options.cancel)
}

/// The same of some files.
pub(crate) fn of_all(store: &dyn Store, paths: &[PathBuf], cancel: &Cancel) -> Result<String> {
    let mut text = String::new();
    for path in paths {
        cancel.check()?;
        let (source, version) = store.open(path)?;
        let bytes = version.bytes();
        let begins = source.read(0..bytes.min(ENDS_BYTES))?;
        let ends = source.read(bytes.saturating_sub(ENDS_BYTES)..bytes)?;
        // A copy on another device is the same file.
        let modified = fs::metadata(path).and_then(|it| it.modified()).ok();
        let tag = match modified.map(|it| it.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()) {
            Some(since) => since.as_nanos().to_string(),
            None => version.tag().to_owned(),
        };
        let ends = [checksum(&begins), checksum(&ends)];
        text.push_str(&format!("{} {bytes} {tag} {ends:x?}\n", name_of(path)));
    }
    Ok(format!("{} files, {:016x}", u64_of(paths.len()), checksum(text.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_was_written_anew_is_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a.parquet", "b.parquet"].map(|name| folder.path().join(name));
        let mut bytes = vec![7; 300_000];
        for path in [&a, &b] {
            fs::write(path, &bytes).unwrap();
        }
        let now = || unchanged(&[folder.path().to_path_buf()], &FilesOptions::default()).unwrap();
        let was = now();
        assert!(was.starts_with("2 files, "), "{was}");
        assert_eq!(now(), was);
        let time = fs::metadata(&a).unwrap().modified().unwrap();
        let set = |time| fs::File::options().append(true).open(&a).unwrap().set_modified(time).unwrap();
        // The size is the same.
        for at in [10, 299_990] {
            bytes[at] = 8;
            fs::write(&a, &bytes).unwrap();
            set(time);
            assert_ne!(now(), was, "byte {at}");
            bytes[at] = 7;
        }
        fs::write(&a, &bytes).unwrap();
        set(time);
        assert_eq!(now(), was);
        set(time + Duration::from_secs(1));
        assert_ne!(now(), was);
    }
}
