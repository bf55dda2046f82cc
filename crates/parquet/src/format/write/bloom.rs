//! Writes the header of a Bloom filter (`BloomFilterHeader`).

use alloc::vec::Vec;

use crate::format::BloomFilterHeader;
use crate::thrift::Writer;

/// A filter's header.
pub(crate) fn write_bloom_header(header: BloomFilterHeader) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.structure(|fields| {
        fields.u32(1, header.bytes);
        // Split blocks, XXH64, uncompressed: the only member of each of these unions. Members have no fields.
        (2..=4).for_each(|union| fields.structure(union, |member| member.empty(1)));
    });
    writer.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    #[test]
    fn headers_are_read_back() {
        for bytes in [32, 1024, 128 << 20] {
            let header = BloomFilterHeader { bytes };
            let written = write_bloom_header(header);
            assert!(written.len() <= 19);
            let behind = [&written[..], &[7; 10]].concat();
            assert_eq!(BloomFilterHeader::read(&behind, 5).unwrap(), (header, written.len()));
            for cut in 0..written.len() {
                let error = BloomFilterHeader::read(&written[..cut], 5).unwrap_err();
                assert_eq!((error.kind(), error.place().offset), (ErrorKind::Corrupt, Some(5)));
            }
        }
    }

    #[test]
    fn what_is_not_known_is_told() {
        let message = |members: [i16; 3], bytes: i32| {
            let mut writer = Writer::new();
            writer.structure(|fields| {
                fields.i32(1, bytes);
                (2..).zip(members).for_each(|(id, member)| fields.structure(id, |it| it.empty(member)));
            });
            let error = BloomFilterHeader::read(&writer.into_vec(), 0).unwrap_err();
            (error.kind(), alloc::string::String::from(error.message()))
        };
        let unsupported = |text: &str| (ErrorKind::Unsupported, text.into());
        assert_eq!(message([2, 1, 1], 32), unsupported("a Bloom filter of the algorithm 2"));
        assert_eq!(message([1, 3, 1], 32), unsupported("a Bloom filter of the hash 3"));
        assert_eq!(message([1, 1, 9], 32), unsupported("a Bloom filter of the compression 9"));
        for bytes in [0, -32, 33, i32::MAX] {
            assert_eq!(message([1, 1, 1], bytes).0, ErrorKind::Corrupt);
        }
    }
}
