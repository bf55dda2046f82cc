//! Counts and sizes as people read them.

use std::num::NonZeroU64;
use std::time::Duration;

/// A count with its thousands apart: `3,000,000`.
pub(crate) fn thousands(count: impl TryInto<u64>) -> String {
    let digits = count.try_into().unwrap_or(u64::MAX).to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A size as a person says it: `13.5 MB` (powers of 1,000).
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let (mut unit, mut scale) = (1, 1000_u128);
    // Tenths, rounded half up. What rounds to 1000.0 kB is 1.0 MB.
    let rounded = |scale: u128| (u128::from(bytes) * 10 + scale / 2) / scale;
    while unit + 1 < UNITS.len() && rounded(scale) >= 10_000 {
        unit += 1;
        scale *= 1000;
    }
    let tenths = rounded(scale);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// A count of an option: at least 1.
pub(crate) fn parse_count<N: TryFrom<NonZeroU64>>(text: &str) -> Result<N, String> {
    let count = whole(text).and_then(NonZeroU64::new).and_then(|count| N::try_from(count).ok());
    count.ok_or_else(|| "must be a whole number, at least 1; 10K is 10,000".to_string())
}

/// A number of an option that may be 0.
pub(crate) fn parse_number<N: TryFrom<u64>>(text: &str) -> Result<N, String> {
    let number = whole(text).and_then(|number| N::try_from(number).ok());
    number.ok_or_else(|| "must be a whole number, at least 0; 10K is 10,000".to_string())
}

/// A whole number: `2500`, `2_500`, or in thousands, millions and thousand millions: `10K`, `3M`, `1G`.
fn whole(text: &str) -> Option<u64> {
    let scale = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => 1_000,
        b'm' => 1_000_000,
        b'g' => 1_000_000_000,
        _ => 1,
    };
    let digits = if scale == 1 { text } else { text.get(..text.len() - 1)? };
    digits.replace('_', "").parse::<u64>().ok()?.checked_mul(scale)
}

/// Bytes of an option, at least 1: `65536`, `64K`, `64KiB` or `64kB`, and so with M and G.
pub(crate) fn parse_bytes<N: TryFrom<NonZeroU64>>(text: &str) -> Result<N, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale = match &*unit.trim_start().to_ascii_lowercase() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        "g" | "gib" => Some(1 << 30),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        _ => None,
    };
    let bytes = scale.and_then(|scale: u64| digits.parse::<u64>().ok()?.checked_mul(scale));
    let bytes = bytes.and_then(NonZeroU64::new).and_then(|bytes| N::try_from(bytes).ok());
    bytes.ok_or_else(|| "must be bytes, at least 1: 65536, 64K (of 1,024), 64kB (of 1,000)".to_string())
}

/// A time of an option: `90s`, `5m`, `1h`, `500ms`; a number alone is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let millis = match unit.trim_start() {
        "ms" => Some(1),
        "" | "s" => Some(1000),
        "m" | "min" => Some(60_000),
        "h" => Some(3_600_000),
        _ => None,
    };
    let duration = millis.and_then(|millis: u64| digits.parse::<u64>().ok()?.checked_mul(millis));
    duration.map(Duration::from_millis).ok_or_else(|| "must be a time: 90s, 5m, 1h, 500ms".to_string())
}

/// How many times smaller: `2.34`. `-` where nothing is.
pub(crate) fn ratio(uncompressed: u64, compressed: u64) -> String {
    if compressed == 0 {
        return "-".to_string();
    }
    // Rounded half up, as sizes are.
    let (uncompressed, compressed) = (u128::from(uncompressed), u128::from(compressed));
    let hundredths = (uncompressed * 100 + compressed / 2) / compressed;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

/// `1 row`, `2 rows`.
pub(crate) fn plural(count: impl TryInto<u64>, one: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{} {one}{}", thousands(count), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_people() {
        let bytes = |text: &str| parse_bytes::<NonZeroU64>(text).map(NonZeroU64::get).ok();
        for (text, expected) in [
            ("1", Some(1)),
            ("64K", Some(65_536)),
            ("64 KiB", Some(65_536)),
            ("64kB", Some(64_000)),
            ("2m", Some(2 << 20)),
            ("1G", Some(1 << 30)),
            ("1GB", Some(1_000_000_000)),
            ("0", None),
            ("0K", None),
            ("", None),
            ("K", None),
            ("-1", None),
            ("1.5M", None),
            ("1T", None),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551615K", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
        assert_eq!(parse_count::<NonZeroU64>("7").unwrap().get(), 7);
        assert_eq!(parse_number::<u64>("0"), Ok(0));
        assert_eq!(
            parse_number::<u64>("-1"),
            Err("must be a whole number, at least 0; 10K is 10,000".to_string())
        );
        assert_eq!(
            ["10K", "3m", "1G", "2_500"].map(parse_number::<u64>),
            [10_000, 3_000_000, 1_000_000_000, 2_500].map(Ok)
        );
        let millis = |text: &str| parse_duration(text).ok().map(|it| it.as_millis());
        let times = ["90", "90s", "2m", "1 h", "250ms", "0"];
        assert_eq!(times.map(millis), [90_000, 90_000, 120_000, 3_600_000, 250, 0].map(Some));
        assert!(
            ["", "m", "1.5s", "-1s", "1d", "99999999999999999h"].iter().all(|text| millis(text).is_none())
        );
        assert!(
            ["0", "", "1T", "K", "20000000000G", "-1"]
                .iter()
                .all(|text| parse_count::<NonZeroU64>(text).is_err())
        );
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(thousands(0_u64), "0");
        assert_eq!(thousands(999_u64), "999");
        assert_eq!(thousands(3_000_000_u64), "3,000,000");
        assert_eq!(size(999), "999 B");
        assert_eq!(size(1000), "1.0 kB");
        let rounded = [1_049, 1_050, 1_999, 13_550_000, 999_949, 999_950, 999_999, 999_950_000];
        let shown = ["1.0 kB", "1.1 kB", "2.0 kB", "13.6 MB", "999.9 kB", "1.0 MB", "1.0 MB", "1.0 GB"];
        assert_eq!(rounded.map(size), shown);
        assert_eq!(size(u64::MAX), "18.4 EB");
        assert_eq!(ratio(22, 0), "-");
        assert_eq!(ratio(234, 100), "2.34");
        assert_eq!(
            (ratio(2, 3), ratio(1, 8), ratio(u64::MAX, 1)),
            ("0.67".into(), "0.13".into(), format!("{}.00", u64::MAX))
        );
        assert_eq!(plural(1, "row"), "1 row");
        assert_eq!(plural(1200, "row"), "1,200 rows");
    }
}
