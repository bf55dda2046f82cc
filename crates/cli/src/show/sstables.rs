//! What is known of SSTables.

use std::path::{Path, PathBuf};

use marquetry::base::calendar::TimeUnit;
use marquetry::base::cast::u64_of;
use marquetry::base::print;
use marquetry::describe::sstables_json;
use marquetry::io::store::Store;
use marquetry::scylla::sstable::batch::NO_DELETION_TIME;
use marquetry::tables::Address;
use marquetry::tables::sstables::{
    ColumnRole, Facts, LargePartition, SstableDescription, SstablesDescription, SstablesOptions, describe,
    is_sstables, largest_partitions,
};

use super::{json, text};
use crate::failure::Outcome;
use crate::hints::of_option;
use crate::numbers::{plural, ratio, size, thousands};
use crate::output::Output;
use crate::table::{Side, Table, printable};
use crate::terminal::Terminal;

/// The paths of SSTables, if that is what the first file is: by its address, or by what is there.
pub(super) fn paths(files: &[PathBuf], store: &dyn Store) -> Option<Vec<PathBuf>> {
    let path = |file: &PathBuf| {
        let address = Address::parse(file.as_path());
        address.sstables().map_or_else(|| file.clone(), Path::to_path_buf)
    };
    let first = files.first()?;
    let address = Address::parse(first.as_path());
    let is_said = address.sstables().is_some();
    let is_local = !matches!(address.scheme(), Some("s3" | "gs" | "az" | "http" | "https"));
    (is_said || (is_local && is_sstables(store, first))).then(|| files.iter().map(path).collect())
}

/// Describes the SSTables of each path, with so many of their largest partitions, if any are wanted.
pub(super) fn show(
    paths: &[PathBuf],
    options: &SstablesOptions,
    (most, as_json): (Option<u64>, bool),
    output: &mut Output,
) -> Outcome {
    for (number, path) in paths.iter().enumerate() {
        let described = describe(path, options)?;
        let most = most.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let largest = most.map(|most| largest_partitions(path, most, options)).transpose()?;
        if as_json {
            json::write(&sstables_json(&described, largest.as_deref()), output.text())?;
        } else {
            if number > 0 {
                output.text().push(b'\n');
            }
            print(&described, largest.as_deref(), Terminal::of_stdout(), output.text());
        }
        output.flush()?;
    }
    Ok(())
}

fn print(
    described: &SstablesDescription,
    largest: Option<&[LargePartition]>,
    terminal: Terminal,
    out: &mut Vec<u8>,
) {
    let mut heading = terminal.bold(&printable(&described.name)) + "\n";
    let known = [("table", &described.table), ("schema", &described.definition)];
    for (name, value) in known.iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        heading += &line(name, &printable(value));
    }
    for note in &described.notes {
        let advice = note.option.and_then(of_option).map(|advice| format!("; {advice}")).unwrap_or_default();
        heading += &line("note", &printable(&(note.text.clone() + &advice)));
    }
    let count = plural(u64_of(described.sstables.len()), "SSTable");
    heading += &line("SSTables", &format!("{count} of {}", versions(&described.sstables)));
    heading += &facts(&described.total);
    out.extend_from_slice(heading.as_bytes());
    text::section("Columns", terminal, out);
    text::print_table(&columns(described), terminal, out);
    for sstable in &described.sstables {
        text::section(&printable(&sstable.name), terminal, out);
        out.extend_from_slice(one(sstable, described.sstables.len() > 1).as_bytes());
    }
    if let Some(largest) = largest {
        text::section("Largest partitions", terminal, out);
        text::print_table(&partitions(largest), terminal, out);
    }
}

fn line(name: &str, value: &str) -> String {
    format!("  {name:<15} {value}\n")
}

fn versions(sstables: &[SstableDescription]) -> String {
    let mut all: Vec<&str> = sstables.iter().map(|sstable| sstable.version.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    format!("version {}", all.join(", "))
}

/// Numbers and times, a line each.
fn facts(facts: &Facts) -> String {
    let mut text = String::new();
    text += &line("partitions", &thousands(facts.partitions));
    text += &line("rows", &thousands(facts.rows));
    text += &line("cells", &thousands(facts.cells));
    let droppable = match facts.droppable_times {
        Some((from, to)) if facts.droppable > 0 => format!(
            "{} (deletions, and cells with a TTL), first about {}, last about {}",
            thousands(facts.droppable),
            minutes(from),
            minutes(to)
        ),
        _ => "nothing: no deletions, no TTLs".to_owned(),
    };
    // Servers add gc_grace_seconds, which SSTables do not have.
    text += &line("can be dropped", &droppable);
    if facts.has_partition_deletions == Some(true) {
        text += &line("", "some partitions are deleted");
    }
    if let Some((least, greatest)) = facts.timestamps {
        text += &line("written", &format!("{} to {}", micros(least), micros(greatest)));
    }
    text += &line(
        "deleted",
        &match facts.local_deletion_times {
            (NO_DELETION_TIME, _) => "nothing, and nothing expires".to_owned(),
            (from, NO_DELETION_TIME) => format!("from {}; not all expires", seconds(from.into())),
            (from, to) => {
                format!("{} to {}; all expires or is deleted", seconds(from.into()), seconds(to.into()))
            }
        },
    );
    if let Some((least, greatest)) = facts.ttls {
        text += &line("TTL", &format!("{} to {} s", thousands(least), thousands(greatest)));
    }
    text += &line(
        "data",
        &format!(
            "{}, uncompressed {} (ratio {}); all components {}",
            size(facts.data_bytes),
            size(facts.uncompressed_bytes),
            ratio(facts.uncompressed_bytes, facts.data_bytes),
            size(facts.bytes)
        ),
    );
    // The bounds of a histogram's buckets.
    let (bytes, cells) = (&facts.partition_sizes, &facts.partition_cells);
    text += &line(
        "partition size",
        &format!(
            "half ≤ {}, 99 % ≤ {}, all ≤ {}",
            size(bytes.percentile(50)),
            size(bytes.percentile(99)),
            size(bytes.most())
        ),
    );
    text += &line(
        "partition cells",
        &format!(
            "half ≤ {}, 99 % ≤ {}, all ≤ {}",
            thousands(cells.percentile(50)),
            thousands(cells.percentile(99)),
            thousands(cells.most())
        ),
    );
    text
}

/// An SSTable; its numbers, too, if it is one of several.
fn one(sstable: &SstableDescription, is_of_several: bool) -> String {
    let mut text = line("version", &format!("{} ({})", sstable.version, sstable.format));
    text += &line(
        "compression",
        &sstable.compression.as_ref().map_or_else(
            || "none".to_owned(),
            |it| format!("{}, chunks of {} KiB", printable(&it.class), it.chunk_bytes.div_ceil(1024)),
        ),
    );
    let class = sstable.partitioner.rsplit('.').next().unwrap_or_default();
    text += &line("partitioner", &printable(class));
    if sstable.level > 0 {
        text += &line("level", &sstable.level.to_string());
    }
    if let Some(at) = sstable.repaired_at {
        text += &line("repaired", &micros(at.saturating_mul(1000)));
    }
    if let Some(host) = sstable.host_id {
        let mut id = Vec::new();
        print::uuid(&mut id, &host);
        text += &line("host id", &String::from_utf8_lossy(&id));
    }
    if is_of_several {
        text += &facts(&sstable.facts);
    }
    let components: Vec<String> = sstable
        .components
        .iter()
        .map(|(name, bytes)| format!("{} {}", printable(name), size(*bytes)))
        .collect();
    text + &line("components", &components.join(", "))
}

fn columns(described: &SstablesDescription) -> Table {
    let mut table = Table::new([("column", Side::Left), ("type", Side::Left), ("", Side::Left)]).indented(2);
    for column in &described.columns {
        let role = match column.role {
            ColumnRole::PartitionKey => "partition key",
            ColumnRole::Clustering if column.is_descending => "clustering, descending",
            ColumnRole::Clustering => "clustering",
            ColumnRole::Static => "static",
            _ => "",
        };
        table.push(vec![printable(&column.name), printable(&column.kind), role.to_owned()]);
    }
    table
}

fn partitions(largest: &[LargePartition]) -> Table {
    let titles = [
        ("key", Side::Left),
        ("token", Side::Right),
        ("bytes", Side::Right),
        ("rows", Side::Right),
        ("cells", Side::Right),
        ("SSTable", Side::Left),
    ];
    let mut table = Table::new(titles).indented(2);
    for partition in largest {
        table.push(vec![
            printable(&partition.key),
            partition.token.to_string(),
            thousands(partition.bytes),
            thousands(partition.rows),
            thousands(partition.cells),
            printable(&partition.sstable),
        ]);
    }
    table
}

fn seconds(at: u64) -> String {
    micros(i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

/// A time of a histogram, which servers round to minutes or more.
fn minutes(at: u64) -> String {
    let text = seconds(at / 60 * 60);
    text.strip_suffix(":00").map_or_else(|| text.clone(), str::to_owned)
}

/// A time, or the number where clients wrote something else.
fn micros(at: i64) -> String {
    let mut text = Vec::new();
    print::timestamp(&mut text, at, TimeUnit::Micros);
    print::without_zeros(&String::from_utf8_lossy(&text))
}
