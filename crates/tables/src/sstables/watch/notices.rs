//! When to look at directories again: when the kernel reports that they changed, or, where it cannot, after some time.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use marquetry_base::{Error, Result};
use marquetry_io::{Noticed, Noticing};

use super::options::WatchOptions;

/// How often directories are looked at where the kernel does not report changes, unless the options say.
const POLL: Duration = Duration::from_secs(5);

/// What tells when to look.
#[derive(Debug)]
pub(super) enum Notices {
    Kernel { noticing: Noticing, data: Vec<PathBuf> },
    Polling { every: Duration, last: Instant },
}

/// What to look at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wake {
    /// Whether to look for tables, and at all of them.
    pub(super) all: bool,
    /// Directories in which something changed that may complete an SSTable, or end it.
    pub(super) directories: BTreeSet<PathBuf>,
}

impl Notices {
    /// Starts to listen; also why that is not possible, if so.
    pub(super) fn new(options: &WatchOptions) -> (Notices, Option<String>) {
        let polling = |every| Notices::Polling { every, last: Instant::now() };
        if let Some(every) = options.poll {
            return (polling(every), Some(format!("every {} s, as was asked for", every.as_secs_f64())));
        }
        let listening = || -> Result<Option<Noticing>> {
            let noticing = Noticing::new()?;
            for data in options.directories() {
                if !noticing.is_complete_for(data)? {
                    return Ok(None);
                }
            }
            Ok(Some(noticing))
        };
        let why = match listening() {
            Ok(Some(noticing)) => {
                return (Notices::Kernel { noticing, data: options.directories().cloned().collect() }, None);
            }
            Ok(None) => {
                "its file system is another machine's, which changes files without this one's knowledge"
                    .to_owned()
            }
            Err(error) => error.message().to_owned(),
        };
        (polling(POLL), Some(format!("every {} s: {why}", POLL.as_secs())))
    }

    /// Listens to a directory, too.
    ///
    /// # Errors
    ///
    /// `Io` if the kernel refuses.
    pub(super) fn add(&mut self, directory: &Path) -> Result<()> {
        match self {
            Notices::Kernel { noticing, .. } => noticing.watch(directory),
            Notices::Polling { .. } => Ok(()),
        }
    }

    /// Does without the kernel from now on.
    pub(super) fn give_up(&mut self, error: &Error) -> String {
        *self = Notices::Polling { every: POLL, last: Instant::now() };
        format!("every {} s: {}", POLL.as_secs(), error.message())
    }

    /// Waits until there is something to look at, but not longer than `at_most`.
    ///
    /// # Errors
    ///
    /// `Io` if the kernel cannot be asked.
    pub(super) fn wait(&mut self, at_most: Duration) -> Result<Wake> {
        match self {
            Notices::Kernel { noticing, data } => Ok(wake(&noticing.wait(at_most)?, data)),
            Notices::Polling { every, last } => {
                let left = every.saturating_sub(last.elapsed());
                std::thread::sleep(left.min(at_most));
                let all = left <= at_most;
                if all {
                    *last = Instant::now();
                }
                Ok(Wake { all, directories: BTreeSet::new() })
            }
        }
    }
}

/// What the paths that changed mean: directories that appear or disappear may be keyspaces or tables; in those of tables, tables of contents
/// and logs say what is complete. The other files of an SSTable are there before.
fn wake(noticed: &Noticed, data: &[PathBuf]) -> Wake {
    let mut wake = Wake { all: noticed.has_lost, ..Wake::default() };
    for path in &noticed.changed {
        let inside = data.iter().find_map(|data| path.strip_prefix(data).ok());
        let depth = inside.map_or(0, |inside| inside.iter().count());
        match depth {
            // Of the data directory, or of a keyspace.
            0..=2 => {
                wake.all |= !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
            }
            _ => wake.directories.extend(path.parent().map(Path::to_path_buf)),
        }
    }
    wake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_says_what_to_look_at() {
        let looked = |paths: &[&str], has_lost: bool| {
            let mut noticed = Noticed::default();
            (noticed.has_lost, noticed.changed) = (has_lost, paths.iter().map(PathBuf::from).collect());
            let wake = wake(&noticed, &["/data".into(), "/disk2/cassandra".into()]);
            let directories: Vec<String> =
                wake.directories.iter().map(|path| path.display().to_string()).collect();
            (wake.all, directories.join(" "))
        };
        assert_eq!(looked(&["/data/ks/t-1/nb-1-big-TOC.txt"], false), (false, "/data/ks/t-1".into()));
        assert_eq!(
            looked(&["/disk2/cassandra/ks/t-1/a-TOC.txt"], false),
            (false, "/disk2/cassandra/ks/t-1".into())
        );
        assert_eq!(looked(&["/disk2/cassandra/ks/t-1"], false), (true, String::new()));
        assert_eq!(looked(&["/data/ks"], false), (true, String::new()));
        assert_eq!(looked(&["/data/ks/t-1"], false), (true, String::new()));
        assert_eq!(looked(&["/data/.marquetry"], false), (false, String::new()));
        assert_eq!(looked(&[], true), (true, String::new()));
    }

    #[test]
    fn polling_looks_at_all_after_its_time() {
        let mut options = WatchOptions::new("data", "lake");
        options.poll = Some(Duration::from_millis(30));
        let (mut notices, why) = Notices::new(&options);
        assert!(why.unwrap().contains("0.03 s"));
        notices.add("nowhere".as_ref()).unwrap();
        assert!(!notices.wait(Duration::from_millis(1)).unwrap().all);
        assert!(notices.wait(Duration::from_secs(20)).unwrap().all);
    }
}
