//! The bars that ours is judged by beside peers: one rule for reading, for nested files and for writing.

/// The largest multiple of the best peer's time that is good.
pub const BAR: f64 = 0.8;
/// The same where a codec is most of the time, and where records are printed.
pub const BAR_SHARED: f64 = 1.0;
/// Where there is nothing to do but to copy, the largest multiple of a copy's time that is good, whatever the peers' is.
pub const BAR_COPY: f64 = 1.2;

/// The largest multiple of the best peer's time that is good for values of an encoding, compressed by a codec. A codec is most of the
/// time where values are PLAIN and compressed.
pub fn of(encoding: &str, codec: &str) -> f64 {
    if encoding == "PLAIN" && codec != "UNCOMPRESSED" { BAR_SHARED } else { BAR }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_is_shared_where_it_is_most_of_the_time() {
        let bars = [
            ("PLAIN", "UNCOMPRESSED", BAR),
            ("PLAIN", "SNAPPY", BAR_SHARED),
            ("PLAIN", "ZSTD", BAR_SHARED),
            ("RLE_DICTIONARY", "SNAPPY", BAR),
            ("DELTA_BYTE_ARRAY", "UNCOMPRESSED", BAR),
            // What a writer chooses.
            ("default", "SNAPPY", BAR),
        ];
        for (encoding, codec, bar) in bars {
            assert!((of(encoding, codec) - bar).abs() < f64::EPSILON, "{encoding} {codec}");
        }
    }
}
