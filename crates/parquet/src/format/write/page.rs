//! The header of a page, written (`PageHeader`).

use alloc::vec::Vec;

use super::chunk::statistics_fields;
use crate::format::{PageHeader, PageKind};
use crate::thrift::Writer;

/// A page's header.
pub(crate) fn write_page_header(header: &PageHeader) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.structure(|fields| {
        fields.i32(
            1,
            match header.kind {
                PageKind::Data(_) => 0,
                PageKind::Dictionary(_) => 2,
                PageKind::DataV2(_) => 3,
                PageKind::Other(number) => number,
            },
        );
        fields.u32(2, header.uncompressed_bytes);
        fields.u32(3, header.compressed_bytes);
        if let Some(crc) = header.crc {
            fields.u32(4, crc);
        }
        match &header.kind {
            PageKind::Data(page) => fields.structure(5, |fields| {
                fields.u32(1, page.values);
                fields.i32(2, page.encoding.number());
                fields.i32(3, page.definition_encoding.number());
                fields.i32(4, page.repetition_encoding.number());
                if let Some(statistics) = &page.statistics {
                    fields.structure(5, |fields| statistics_fields(fields, statistics));
                }
            }),
            PageKind::Dictionary(page) => fields.structure(7, |fields| {
                fields.u32(1, page.values);
                fields.i32(2, page.encoding.number());
                if let Some(is_sorted) = page.is_sorted {
                    fields.bool(3, is_sorted);
                }
            }),
            PageKind::DataV2(page) => fields.structure(8, |fields| {
                fields.u32(1, page.values);
                fields.u32(2, page.nulls);
                fields.u32(3, page.rows);
                fields.i32(4, page.encoding.number());
                fields.u32(5, page.definition_bytes);
                fields.u32(6, page.repetition_bytes);
                fields.bool(7, page.is_compressed);
                if let Some(statistics) = &page.statistics {
                    fields.structure(8, |fields| statistics_fields(fields, statistics));
                }
            }),
            PageKind::Other(_) => {}
        }
    });
    writer.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, Encoding, Statistics};
    use alloc::boxed::Box;
    use alloc::vec;
    use marquetry_base::{Budget, Bytes, Limits};

    #[test]
    fn headers_are_read_back() {
        let statistics = Statistics {
            min_value: Some(vec![1, 2].into()),
            max_value: Some(vec![9; 4096].into()),
            deprecated_min: Some(vec![3].into()),
            deprecated_max: Some(vec![4].into()),
            null_count: Some(7),
            distinct_count: Some(3),
            nan_count: Some(0),
            is_min_value_exact: Some(true),
            is_max_value_exact: Some(false),
        };
        for statistics in [None, Some(Box::new(statistics))] {
            let kinds = [
                PageKind::Data(DataPageHeader {
                    values: 5,
                    encoding: Encoding::RleDictionary,
                    definition_encoding: Encoding::Rle,
                    repetition_encoding: Encoding::BitPacked,
                    statistics: statistics.clone(),
                }),
                PageKind::DataV2(DataPageHeaderV2 {
                    values: u32::MAX >> 1,
                    nulls: 2,
                    rows: 4,
                    encoding: Encoding::Alp,
                    definition_bytes: 10,
                    repetition_bytes: 0,
                    is_compressed: false,
                    statistics,
                }),
                PageKind::Dictionary(DictionaryPageHeader {
                    values: 9,
                    encoding: Encoding::Plain,
                    is_sorted: Some(false),
                }),
            ];
            for kind in kinds {
                let header =
                    PageHeader { kind, uncompressed_bytes: 70_000, compressed_bytes: 3, crc: Some(u32::MAX) };
                let bytes = write_page_header(&header);
                assert_eq!(PageHeader::read(&bytes), Ok((header, bytes.len())));
            }
        }
    }

    /// Read at once or skimmed, with as many bytes at a time.
    #[test]
    fn long_bounds_are_left_out() {
        let header = |min: usize, max: usize| {
            let bound = |length: usize| Some(vec![7; length].into());
            let statistics = Statistics {
                min_value: bound(min),
                max_value: bound(max),
                null_count: Some(7),
                ..Statistics::default()
            };
            let kind = PageKind::Data(DataPageHeader {
                values: 5,
                encoding: Encoding::Plain,
                definition_encoding: Encoding::Rle,
                repetition_encoding: Encoding::Rle,
                statistics: Some(Box::new(statistics)),
            });
            PageHeader { kind, uncompressed_bytes: 70_000, compressed_bytes: 3, crc: None }
        };
        for (min, max) in [(4096, 4096), (4096, 4097), (5000, 4), (100_000, 300_000)] {
            let bytes = write_page_header(&header(min, max));
            let (read, length) = PageHeader::read(&bytes).unwrap();
            let PageKind::Data(DataPageHeader { statistics: Some(found), .. }) = &read.kind else { panic!() };
            let lengths = [&found.min_value, &found.max_value].map(|bound| bound.as_ref().map(|it| it.len()));
            assert_eq!(lengths, [min, max].map(|length| (length <= 4096).then_some(length)));
            assert_eq!((found.null_count, length), (Some(7), bytes.len()));
            // Where they are not wanted they are checked nevertheless.
            let (bare, length) = PageHeader::read_some(&bytes, false).unwrap();
            assert!(matches!(&bare.kind, PageKind::Data(DataPageHeader { statistics: None, .. })));
            assert_eq!((bare.compressed_bytes, length), (3, bytes.len()));
            for cut in (0..bytes.len()).step_by(7) {
                let stops =
                    [true, false].map(|keeps| PageHeader::read_some(&bytes[..cut], keeps).unwrap_err());
                assert_eq!(stops[0], stops[1], "{cut} of {}", bytes.len());
            }
            for at_once in [1, 100, 5000, bytes.len()] {
                let mut skim = PageHeader::skim(0, &Limits::default());
                for part in bytes.chunks(at_once) {
                    let part = Bytes::copy_from_slice(part);
                    skim.step(&part, &mut Budget::unlimited()).unwrap();
                }
                assert_eq!(PageHeader::of_skim(&skim).unwrap(), read, "{min}, {max}, {at_once}");
            }
        }
    }
}
