//! Random SSTables are the same after they were written.

use crate::form::{read, table};
use crate::model::merge_all;
use crate::random::flush;
use crate::writing::{all_options, write};

fn check(seeds: std::ops::Range<u64>) {
    let every = all_options();
    for seed in seeds {
        let (sstable, is_counter, batches) = flush(seed);
        let options = &every[usize::try_from(seed).expect("small") % every.len()];
        let units = [0, 400, 150_000][usize::try_from(seed).expect("small") % 3];
        if sstable.is_empty() {
            continue;
        }
        let written = match write(&table(is_counter), options, &batches, units) {
            Ok(written) => written,
            // A deletion that only ScyllaDB's files have beside another.
            Err(error) if error.message().contains("shadowable") => continue,
            Err(error) => panic!("seed {seed}, {}: {error}", options.version),
        };
        let found = merge_all(&[read(&written.read(), is_counter)], is_counter);
        assert!(
            found == sstable,
            "seed {seed}, {}:\nfound    {found:#?}\nexpected {sstable:#?}",
            options.version
        );
    }
}

#[test]
fn random_sstables_are_read_as_they_were_written() {
    check(0..1200);
}

#[test]
#[ignore = "soak: as above, of more tables"]
fn many_random_sstables_are_read_as_they_were_written() {
    check(1200..60_000);
}
