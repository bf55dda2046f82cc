//! Files in which work keeps how far it is: of one process at a time, with texts in quotes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result, print};

use crate::failed;

/// A lock on a file that is replaced while it is held, so it is one on a file beside it, `FILE.lock`. It ends with the process, whatever
/// ends that, and the file is removed where that is safe.
///
/// ```
/// use marquetry_io::state_file::Lock;
///
/// let folder = std::env::temp_dir().join(format!("locked-{}", std::process::id()));
/// std::fs::create_dir(&folder).unwrap();
/// let lock = Lock::take(folder.join("state"), "state").unwrap();
/// assert!(Lock::take(folder.join("state"), "state").is_err());
/// drop(lock);
/// std::fs::remove_dir(folder).unwrap();
/// ```
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// Locked as long as it is open.
    file: File,
}

impl Lock {
    /// Locks a file, which need not exist.
    ///
    /// # Errors
    ///
    /// `Misuse` about `option` if another process has it; `Io` if the lock's file cannot be created, or its file system has no locks.
    pub fn take(of: impl AsRef<Path>, option: &'static str) -> Result<Lock> {
        let of = of.as_ref();
        let mut path = OsString::from(of);
        path.push(".lock");
        let path = PathBuf::from(path);
        let name = path.display().to_string();
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
            let file = file.map_err(|error| failed("created", &name, error))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let what = format!("{} is in use: another process works with it", of.display());
                    return Err(Error::option(option, what));
                }
                Err(TryLockError::Error(error)) => return Err(failed("locked", &name, error)),
            }
            // Whoever had it before may have removed it meanwhile: then others lock another file.
            if is_at(&file, &path) {
                return Ok(Lock { path, file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if CAN_REMOVE && is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a file is known to be the one at a path. Where that cannot be known, lock files stay.
const CAN_REMOVE: bool = cfg!(unix);

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// A text in quotes, on one line.
pub fn quoted(text: &str) -> String {
    let mut line = vec![b'"'];
    print::json::escape(&mut line, text);
    line.push(b'"');
    String::from_utf8_lossy(&line).into_owned()
}

/// The text that was quoted. `None` for what is none.
///
/// ```
/// use marquetry_io::state_file::{quoted, unquoted};
///
/// let text = "a\\b\n\"c\" é\u{1}";
/// assert_eq!(unquoted(&quoted(text)).as_deref(), Some(text));
/// assert_eq!(unquoted("text"), None);
/// ```
pub fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match chars.next()? {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
            }
            other => other,
        });
    }
    Some(out)
}

/// What the last line of a sealed text begins with.
const CHECKSUM: &str = "checksum ";

/// A text of whole lines, and a last line with its checksum: whoever reads it knows that nobody changed or cut it.
///
/// ```
/// use marquetry_io::state_file::{sealed, unsealed};
///
/// let text = sealed("rows 12\n");
/// assert_eq!(unsealed(&text), Some("rows 12\n"));
/// assert_eq!(unsealed(&text.replace("12", "13")), None);
/// ```
pub fn sealed(text: &str) -> String {
    format!("{text}{CHECKSUM}{:016x}\n", checksum(text.as_bytes()))
}

/// The text that was sealed. `None` if it is another by now.
pub fn unsealed(text: &str) -> Option<&str> {
    let lines = text.strip_suffix('\n')?;
    let start = lines.rfind('\n')? + 1;
    let (text, last) = (text.get(..start)?, lines.get(start..)?);
    let digits = last.strip_prefix(CHECKSUM)?;
    (digits == format!("{:016x}", checksum(text.as_bytes()))).then_some(text)
}

/// A number that bytes which differ hardly ever share (FNV-1a): against accidents, not against attacks.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::{Detail, ErrorKind};

    #[test]
    fn what_was_changed_is_not_believed() {
        let text = sealed("a 1\nb 2\n");
        assert_eq!(unsealed(&text), Some("a 1\nb 2\n"));
        assert_eq!(unsealed(&sealed("")), None, "a text without a line");
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] ^= 1;
            assert_eq!(unsealed(&String::from_utf8(other).unwrap()), None, "byte {at}");
            assert_eq!(unsealed(&text[..at]), None, "cut at {at}");
        }
        assert_eq!(unsealed(&format!("{text}c\n")), None);
    }

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("load.state");
        let first = Lock::take(&path, "state").unwrap();
        let error = Lock::take(&path, "state").unwrap_err();
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Misuse, Some(Detail::Option("state"))));
        assert!(
            error.to_string().ends_with("load.state is in use: another process works with it"),
            "{error}"
        );
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        // One that a process left that was killed is no lock.
        fs::write(folder.path().join("load.state.lock"), "").unwrap();
        drop(Lock::take(&path, "state").unwrap());
        let nowhere = Lock::take(folder.path().join("no/such/file"), "state").unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::Io);
    }
}
