//! The header of a page, written (`PageHeader`).

use alloc::vec::Vec;

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
                if let Some(nulls) = page.nulls {
                    fields.structure(5, |fields| fields.u64(3, nulls));
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
            }),
            PageKind::Other(_) => {}
        }
    });
    writer.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, Encoding};

    #[test]
    fn headers_are_read_back() {
        for nulls in [None, Some(7)] {
            let kinds = [
                PageKind::Data(DataPageHeader {
                    values: 5,
                    encoding: Encoding::RleDictionary,
                    definition_encoding: Encoding::Rle,
                    repetition_encoding: Encoding::BitPacked,
                    nulls,
                }),
                PageKind::DataV2(DataPageHeaderV2 {
                    values: u32::MAX >> 1,
                    nulls: 2,
                    rows: 4,
                    encoding: Encoding::Alp,
                    definition_bytes: 10,
                    repetition_bytes: 0,
                    is_compressed: false,
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
}
