//! Hosts of every manner, and files of every fault.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, Limits, Machine, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::checksums::ChecksumsReader;
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::statistics::StatisticsReader;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing};

use crate::driver::{self, Manner};
use crate::files::{Files, OBJECT, next};
use crate::fixtures;

const MANNERS: [Manner; 4] = [Manner::KIND, Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL];

/// Units that a step may charge beyond its budget: the slice that it was in the middle of. The dearest is a block of ZSTD.
const SLICE_UNITS_MAX: u64 = 75_000;

fn product<M: Machine>(mut machine: M, bytes: &Bytes, manner: Manner) -> Result<M::Product>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let mut product = None;
    let report = driver::run(&mut machine, OBJECT, bytes, manner, |it| {
        product = Some(it);
        Ok(())
    })?;
    check_units(report.units_max, manner);
    Ok(product.expect("a product"))
}

pub(crate) fn check_units(units_max: u64, manner: Manner) {
    if manner.budget <= Budget::DEFAULT_UNITS {
        assert!(units_max <= manner.budget + SLICE_UNITS_MAX, "{units_max} units in a step");
    }
}

fn batches(files: &Files, manner: Manner) -> Result<Vec<MutationBatch>> {
    let version = files.name.version;
    let statistics =
        product(StatisticsReader::new(OBJECT, version, Limits::DEFAULT), &files.statistics, manner)?;
    let packing = match (&files.compression_info, &files.checksums) {
        (Some(info), _) => {
            let reader = CompressionInfoReader::new(OBJECT, version, Limits::DEFAULT);
            Packing::Compressed(Arc::new(product(reader, info, manner)?))
        }
        (_, Some(sums)) => {
            let reader = ChecksumsReader::new(OBJECT, Limits::DEFAULT);
            Packing::Plain(Some(Arc::new(product(reader, sums, manner)?)))
        }
        _ => Packing::Plain(None),
    };
    let codecs = Arc::new(StandardCodecs::default());
    let options = DataOptions::default();
    let mut reader = DataReader::new(OBJECT, version, &statistics.header, packing, codecs, options)?;
    let mut batches = Vec::new();
    let report = driver::run(&mut reader, OBJECT, &files.data, manner, |batch| {
        batches.push(batch);
        Ok(())
    })?;
    check_units(report.units_max, manner);
    Ok(batches)
}

fn each(names: &[&str], mut test: impl FnMut(&Path, &Files)) {
    let Some(all) = fixtures() else { return };
    for path in all.iter().filter(|path| names.iter().any(|name| path.to_string_lossy().contains(name))) {
        test(path, &Files::open(path));
    }
}

#[test]
fn batches_do_not_depend_on_the_host() {
    each(&["/cnt/", "/simple/", "/mix/", "legacy_me_clust_compact/"], |path, files| {
        let expected = batches(files, Manner::KIND).unwrap();
        for manner in MANNERS {
            assert!(batches(files, manner).unwrap() == expected, "{}: {manner:?}", path.display());
        }
    });
}

/// Reads a component to its end, or to an error, which must say where it is.
fn attempt<M: Machine>(mut machine: M, bytes: &Bytes, component: &str) {
    loop {
        match next(&mut machine, bytes) {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => return check_place(&error, component),
        }
    }
}

fn check_place(error: &Error, component: &str) {
    assert_eq!(error.place().object.as_deref(), Some(component), "{error}");
}

/// Ends of a component, and changes of its bytes.
fn faults(bytes: &Bytes, step: usize) -> impl Iterator<Item = Bytes> + '_ {
    let cut = (0..bytes.len()).step_by(step).map(|end| bytes.slice(..end));
    let changed = (0..bytes.len()).step_by(step).flat_map(|at| {
        [0x01, 0x80, 0xff].map(|flip| {
            let mut changed = bytes.to_vec();
            changed[at] ^= flip;
            Bytes::from(changed)
        })
    });
    cut.chain(changed)
}

#[test]
fn faults_of_small_components_are_errors() {
    each(
        &["4.1.10-nb-snappy/mix/", "3.11.10-md-lz4/cnt/", "5.0.9-oa-none/wide/", "legacy_mc_clust/"],
        |_, files| {
            let version = files.name.version;
            for bytes in faults(&files.statistics, 3) {
                attempt(StatisticsReader::new(OBJECT, version, Limits::DEFAULT), &bytes, "Statistics.db");
            }
            for bytes in files.compression_info.iter().flat_map(|info| faults(info, 1)) {
                attempt(
                    CompressionInfoReader::new(OBJECT, version, Limits::DEFAULT),
                    &bytes,
                    "CompressionInfo.db",
                );
            }
            for bytes in files.checksums.iter().flat_map(|sums| faults(sums, 1)) {
                attempt(ChecksumsReader::new(OBJECT, Limits::DEFAULT), &bytes, "CRC.db");
            }
        },
    );
}

#[test]
fn faults_of_data_are_errors_or_other_data() {
    each(
        &[
            "5.0.9-da-none/cnt/",
            "5.0.9-da-none/mix/da-2",
            "3.11.19-me-none/mix/me-2",
            "3.11.19-me-none/wide/me-2",
        ],
        |_, files| {
            let statistics = files.read_statistics().unwrap();
            // Without checksums, so that what is changed is parsed.
            for bytes in faults(&files.data, 1) {
                let codecs = Arc::new(StandardCodecs::default());
                let (version, options) = (files.name.version, DataOptions::default());
                let packing = Packing::Plain(None);
                let reader =
                    DataReader::new(OBJECT, version, &statistics.header, packing, codecs, options).unwrap();
                attempt(reader, &bytes, "Data.db");
            }
        },
    );
}

#[test]
fn every_change_of_data_with_checksums_is_found() {
    each(
        &[
            "5.0.9-da-lz4/mix/da-2",
            "5.0.9-oa-zstd/cnt/",
            "3.11.19-me-none/wide/me-2",
            "3.11.19-me-deflate/cnt/",
        ],
        |path, files| {
            let statistics = files.read_statistics().unwrap();
            for bytes in faults(&files.data, 1) {
                let mut reader = files.reader(&statistics, DataOptions::default()).unwrap();
                let error = loop {
                    match next(&mut reader, &bytes) {
                        Ok(Some(_)) => {}
                        Ok(None) => panic!("{}: a change that nothing finds", path.display()),
                        Err(error) => break error,
                    }
                };
                check_place(&error, "Data.db");
            }
        },
    );
}
