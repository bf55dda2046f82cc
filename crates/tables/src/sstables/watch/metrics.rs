//! Counters in a file that Prometheus's node exporter reads (its textfile collector).

use std::fs;
use std::path::Path;

use marquetry_base::Result;
use marquetry_io::failed;

use super::report::WatchSummary;

/// Writes the counters; the file is replaced as a whole, as the collector wants it.
///
/// # Errors
///
/// `Io`.
pub(super) fn write(path: &Path, counts: &WatchSummary) -> Result<()> {
    let hidden = path.with_extension("prom.new");
    let written = fs::write(&hidden, text(counts)).and_then(|()| fs::rename(&hidden, path));
    written.map_err(|error| failed("written", &path.display().to_string(), error))
}

fn text(counts: &WatchSummary) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, value: String| {
        let name = format!("marquetry_watch_{name}");
        text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"));
    };
    let seconds = counts.busy.as_secs_f64();
    for (name, help, value) in [
        ("sstables_converted_total", "SSTables that became Parquet files.", counts.converted),
        ("rows_total", "Rows of these files.", counts.rows),
        ("sstable_bytes_total", "Bytes of the data of these SSTables.", counts.bytes_read),
        ("parquet_bytes_total", "Bytes of these files.", counts.bytes),
        ("sstables_skipped_total", "SSTables whose content is in other files.", counts.skipped),
        ("files_removed_total", "Files removed because their SSTable was replaced.", counts.removed),
        ("sstables_failed_total", "SSTables that cannot be converted.", counts.failed),
        ("retries_total", "Tries that failed for a reason that may pass.", counts.retries),
    ] {
        metric(name, "counter", help, value.to_string());
    }
    metric("busy_seconds_total", "counter", "Time spent in conversions.", format!("{seconds:.3}"));
    for (name, help, value) in [
        ("sstables_waiting", "SSTables that are to be converted.", counts.waiting),
        ("sstables_incomplete", "SSTables that are being written.", counts.incomplete),
        ("last_converted_timestamp_seconds", "When the last file appeared.", counts.last_converted),
    ] {
        metric(name, "gauge", help, value.to_string());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_metric_has_its_help_and_its_type() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.prom");
        let mut counts = WatchSummary::default();
        (counts.converted, counts.busy, counts.waiting) = (3, Duration::from_millis(1_500), 2);
        write(&path, &counts).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(samples.contains(&"marquetry_watch_sstables_converted_total 3"));
        assert!(samples.contains(&"marquetry_watch_busy_seconds_total 1.500"));
        assert!(samples.contains(&"marquetry_watch_sstables_waiting 2"));
        for sample in &samples {
            let name = sample.split(' ').next().unwrap();
            let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
            assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        }
        assert_eq!(text.lines().count(), 3 * samples.len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("none/a.prom"), &counts).is_err());
    }
}
