//! What the examples compress.

use std::io::Write;

/// Adds a value derived from a random number.
type More = dyn FnMut(&mut Vec<u8>, u64);

/// Data like those of real columns, `page_bytes` each.
pub(crate) fn columns(page_bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut fill = |mut more: Box<More>| {
        let mut plain = Vec::new();
        while plain.len() < page_bytes {
            more(&mut plain, random());
        }
        plain.truncate(page_bytes);
        plain
    };
    let (mut time, mut key) = (1_600_000_000_000_000, 0u32);
    vec![
        (
            "growing 32-bit integers",
            fill(Box::new(move |plain, random| {
                key += u32::try_from(random % 100).expect("small");
                plain.extend(key.to_le_bytes());
            })),
        ),
        (
            "timestamps",
            fill(Box::new(move |plain, random| {
                time += random % 5_000_000;
                plain.extend(time.to_le_bytes());
            })),
        ),
        (
            "prices, 64-bit floats",
            fill(Box::new(|plain, random| plain.extend(((random % 10_000) as f64 / 100.0).to_le_bytes()))),
        ),
        (
            "32-bit integers below 100",
            fill(Box::new(|plain, random| {
                let value = u32::try_from(random % 100).expect("small");
                plain.extend(value.to_le_bytes());
            })),
        ),
        (
            "runs of 32-bit integers",
            fill(Box::new(|plain, random| {
                let value = u32::try_from(random % 7).expect("small");
                for _ in 0..1 + random / 7 % 50 {
                    plain.extend(value.to_le_bytes());
                }
            })),
        ),
        (
            "URLs",
            fill(Box::new(|plain, random| {
                let section =
                    ["news", "sport", "music", "films"][usize::try_from(random % 4).expect("small")];
                writeln!(plain, "https://example.com/{section}/page?id={:x}", random >> 44).expect("memory");
            })),
        ),
        ("noise", fill(Box::new(|plain, random| plain.extend(random.to_le_bytes())))),
    ]
}
