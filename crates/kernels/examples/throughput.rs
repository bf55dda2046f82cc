//! Nanoseconds per value of every kernel, at every instruction-set level of this processor.
//!
//! `cargo run --release -p marquetry-kernels --example throughput [NAME-PART]`. Each number is the least of several
//! passes over data of batch size that stay in the second-level cache: so it measures the kernel, not memory.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "sizes here are small constants"
)]

use marquetry_kernels::cpu::{self, Level};
use marquetry_kernels::{bits, bss, crc32, delta, dictionary, gather, plain, spread, strings, unpack, utf8};
use std::hint::black_box;
use std::time::Instant;

/// Values a call, as a batch of the reader has.
const BATCH: usize = 8192;
const PASSES: usize = 15;
const CALLS_A_PASS: usize = 40;

fn main() {
    let part = std::env::args().nth(1).unwrap_or_default();
    let levels: Vec<Level> = cpu::levels().collect();
    println!(
        "{:<44}{}",
        "ns a value",
        levels.iter().map(|l| format!("{:>12}", format!("{l:?}"))).collect::<String>()
    );
    let mut bench = Bench { part, levels };
    unpacking(&mut bench);
    dictionaries(&mut bench);
    deltas(&mut bench);
    fixed_width(&mut bench);
    views(&mut bench);
    bitmaps(&mut bench);
    spreading(&mut bench);
    checks(&mut bench);
    from_memory(&bench.part);
}

struct Bench {
    part: String,
    levels: Vec<Level>,
}

impl Bench {
    /// Prints a row: `call` handles `values` values.
    fn row(&mut self, name: &str, values: usize, mut call: impl FnMut()) {
        if !name.contains(&self.part) {
            return;
        }
        print!("{name:<44}");
        for &level in &self.levels {
            cpu::hold_to(level);
            let least = (0..PASSES)
                .map(|_| {
                    let start = Instant::now();
                    (0..CALLS_A_PASS).for_each(|_| call());
                    start.elapsed().as_secs_f64()
                })
                .fold(f64::MAX, f64::min);
            print!("{:>12.3}", least * 1e9 / (CALLS_A_PASS * values) as f64);
        }
        println!();
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 32) as u8).collect()
    }
}

fn unpacking(bench: &mut Bench) {
    let input = Random(1).bytes(BATCH * 8 + 8);
    let mut out = vec![0u32; BATCH];
    for width in [1, 2, 3, 4, 5, 7, 8, 10, 12, 13, 16, 17, 20, 24, 25, 27, 30, 31, 32] {
        bench.row(&format!("unpack::u32 width {width}"), BATCH, || {
            unpack::u32(width, black_box(&input), &mut out).unwrap();
        });
    }
    for count in [8, 32, 100] {
        bench.row(&format!("unpack::u32 width 5, {count} a call"), BATCH / count * count, || {
            for out in out.chunks_exact_mut(count) {
                unpack::u32(5, black_box(&input), out).unwrap();
            }
        });
    }
    bench.row("unpack::u32_from width 5, unaligned", BATCH - 3, || {
        unpack::u32_from(5, black_box(&input), 3, &mut out[..BATCH - 3]).unwrap();
    });
    let mut out = vec![0u64; BATCH];
    for width in [1, 7, 12, 20, 31, 40, 57, 58, 63, 64] {
        bench.row(&format!("unpack::u64 width {width}"), BATCH, || {
            unpack::u64(width, black_box(&input), &mut out).unwrap();
        });
    }
    let mut bytes = vec![0u8; BATCH];
    let mut out = vec![0u16; BATCH];
    for width in [1, 2, 3] {
        bench.row(&format!("unpack::u8_from width {width}"), BATCH, || {
            unpack::u8_from(width, black_box(&input), 0, &mut bytes).unwrap();
        });
        bench.row(&format!("unpack::msb_u16 width {width}"), BATCH, || {
            unpack::msb_u16(width, black_box(&input), 0, black_box(&mut out)).unwrap();
        });
    }
}

fn dictionaries(bench: &mut Bench) {
    let mut random = Random(2);
    let packed = random.bytes(BATCH * 4 + 8);
    for entries in [16usize, 1000, 50_000] {
        let indices: Vec<u32> = (0..BATCH).map(|_| (random.next() >> 33) as u32 % entries as u32).collect();
        let b4: Vec<u32> = (0..entries as u32).collect();
        let b8: Vec<u64> = (0..entries as u64).collect();
        let b16: Vec<u128> = (0..entries as u128).collect();
        let bytes = random.bytes(entries * 21);
        let (mut o4, mut o8, mut o16) = (vec![0; BATCH], vec![0; BATCH], vec![0; BATCH]);
        bench.row(&format!("gather 4 bytes, {entries} entries"), BATCH, || {
            gather::values(&b4, black_box(&indices), &mut o4).unwrap();
        });
        bench.row(&format!("gather 8 bytes, {entries} entries"), BATCH, || {
            gather::values(&b8, black_box(&indices), &mut o8).unwrap();
        });
        bench.row(&format!("gather 16 bytes, {entries} entries"), BATCH, || {
            gather::values(&b16, black_box(&indices), &mut o16).unwrap();
        });
        for width in [12, 21] {
            let mut out = vec![0; BATCH * width];
            bench.row(&format!("gather::fixed {width} bytes, {entries} entries"), BATCH, || {
                gather::fixed(&bytes, width, black_box(&indices), &mut out).unwrap();
            });
        }
        let width = entries.next_power_of_two().trailing_zeros();
        // A complete dictionary needs no check; one that is an entry short does, and these indices never refer to its
        // last.
        let full: Vec<u32> = (0..1 << width).collect();
        bench.row(&format!("dictionary 4 bytes, width {width}, complete"), BATCH, || {
            dictionary::decode(width, black_box(&packed), 0, &full, &mut o4).unwrap();
        });
        let full: Vec<u64> = (0..1 << width).collect();
        bench.row(&format!("dictionary 8 bytes, width {width}, complete"), BATCH, || {
            dictionary::decode(width, black_box(&packed), 0, &full, &mut o8).unwrap();
        });
        let full: Vec<u128> = (0..1 << width).collect();
        bench.row(&format!("dictionary 16 bytes, width {width}, complete"), BATCH, || {
            dictionary::decode(width, black_box(&packed), 0, &full, &mut o16).unwrap();
        });
        let zeros = vec![0; packed.len()];
        bench.row(&format!("dictionary 4 bytes, width {width}, checked"), BATCH, || {
            dictionary::decode(width, black_box(&zeros), 0, &b4[..entries - 1], &mut o4).unwrap();
        });
    }
    let indices = vec![3u32; BATCH];
    bench.row("max_u32", BATCH, || {
        black_box(gather::max_u32(black_box(&indices)));
    });
}

fn deltas(bench: &mut Bench) {
    let input = Random(3).bytes(BATCH * 8 + 8);
    let (mut o4, mut o8) = (vec![0i32; BATCH], vec![0i64; BATCH]);
    for width in [0, 4, 7, 12, 20, 31] {
        bench.row(&format!("delta::miniblock_i32 width {width}, 32 a call"), BATCH, || {
            let mut last = 0;
            for out in o4.chunks_exact_mut(32) {
                delta::miniblock_i32(width, black_box(&input), 0, -3, &mut last, out).unwrap();
            }
        });
    }
    for width in [0, 4, 7, 12, 20, 40, 60] {
        bench.row(&format!("delta::miniblock_i64 width {width}, 32 a call"), BATCH, || {
            let mut last = 0;
            for out in o8.chunks_exact_mut(32) {
                delta::miniblock_i64(width, black_box(&input), 0, -3, &mut last, out).unwrap();
            }
        });
    }
    let (d4, d8) = (vec![5u32; BATCH], vec![5u64; BATCH]);
    for width in [0, 4, 7, 12, 20] {
        let input = vec![0x5a; BATCH * width / 8];
        let widths = [width as u8; 4];
        bench.row(&format!("delta::block_i32 width {width}, 4 x 32"), BATCH, || {
            let (mut last, mut at) = (0, 0);
            for out in o4.chunks_mut(128) {
                at += delta::block_i32(&widths, 32, black_box(&input[at..]), -3, &mut last, out).unwrap();
            }
        });
        bench.row(&format!("delta::block_i64 width {width}, 4 x 32"), BATCH, || {
            let (mut last, mut at) = (0, 0);
            for out in o8.chunks_mut(128) {
                at += delta::block_i64(&widths, 32, black_box(&input[at..]), -3, &mut last, out).unwrap();
            }
        });
    }
    bench.row("delta::prefix_sum_i32", BATCH, || {
        delta::prefix_sum_i32(&mut 0, -3, black_box(&d4), &mut o4).unwrap();
    });
    bench.row("delta::prefix_sum_i64", BATCH, || {
        delta::prefix_sum_i64(&mut 0, -3, black_box(&d8), &mut o8).unwrap();
    });
}

fn fixed_width(bench: &mut Bench) {
    let input = Random(4).bytes(BATCH * 16 + 8);
    let (mut o4, mut o8) = (vec![0i32; BATCH], vec![0f64; BATCH]);
    bench.row("plain 4 bytes, unaligned", BATCH, || {
        black_box(plain::copy(black_box(&input[1..]), &mut o4));
    });
    bench.row("plain 8 bytes, unaligned", BATCH, || {
        black_box(plain::copy(black_box(&input[1..]), &mut o8));
    });
    for width in [2, 4, 8, 12, 16] {
        let mut out = vec![0; BATCH * width];
        bench.row(&format!("bss width {width}"), BATCH, || {
            bss::decode(width, black_box(&input[..BATCH * width]), BATCH, 0, &mut out).unwrap();
        });
    }
}

fn views(bench: &mut Bench) {
    let mut random = Random(5);
    let mut out = vec![0u128; BATCH];
    type Length = fn(u64) -> usize;
    let shapes: [(&str, Length); 8] = [
        ("8 bytes", |_| 8),
        ("4 bytes", |_| 4),
        ("12 bytes", |_| 12),
        ("80 bytes", |_| 80),
        ("0 to 12 bytes", |x| (x % 13) as usize),
        ("5 to 30 bytes", |x| 5 + (x % 26) as usize),
        ("8 bytes, one in 20 other", |x| if x % 20 == 0 { (x >> 8) as usize % 12 } else { 8 }),
        ("8 bytes, one in 4 other", |x| if x % 4 == 0 { (x >> 8) as usize % 12 } else { 8 }),
    ];
    for (name, length) in shapes {
        let (mut input, mut data, mut lengths) = (vec![], vec![], vec![]);
        for _ in 0..BATCH {
            let n = length(random.next() >> 20);
            let bytes = random.bytes(n);
            input.extend_from_slice(&(n as u32).to_le_bytes());
            input.extend_from_slice(&bytes);
            data.extend_from_slice(&bytes);
            lengths.push(n as i32);
        }
        bench.row(&format!("strings::plain {name}"), BATCH, || {
            let n = strings::plain(black_box(&input), &mut 0, 1, 0, 1 << 20, &mut out).unwrap();
            assert_eq!(n, BATCH);
        });
        bench.row(&format!("strings::lengths_to_views {name}"), BATCH, || {
            let n = strings::lengths_to_views(black_box(&lengths), &data, &mut 0, 1, 0, &mut out).unwrap();
            assert_eq!(n, BATCH);
        });
    }
}

fn bitmaps(bench: &mut Bench) {
    let mut random = Random(6);
    let src = random.bytes(BATCH / 8 + 8);
    let mut dst = vec![0; BATCH / 8 + 8];
    bench.row("bits::copy, bytes", BATCH, || bits::copy(black_box(&src), 0, &mut dst, 8, BATCH).unwrap());
    bench.row("bits::copy, unaligned", BATCH, || bits::copy(black_box(&src), 3, &mut dst, 5, BATCH).unwrap());
    bench.row("bits::count_ones, unaligned", BATCH, || {
        black_box(bits::count_ones(black_box(&src), 3, BATCH).unwrap());
    });
    let l1: Vec<u8> = (0..BATCH).map(|_| (random.next() >> 60) as u8 & 1).collect();
    let l2: Vec<u16> = l1.iter().map(|&level| level.into()).collect();
    bench.row("bits::from_levels u8", BATCH, || {
        black_box(bits::from_levels(black_box(&l1), 1, &mut dst, 3).unwrap());
    });
    bench.row("bits::from_levels u16", BATCH, || {
        black_box(bits::from_levels(black_box(&l2), 1, &mut dst, 3).unwrap());
    });
    let mut out = vec![0; BATCH];
    bench.row("bits::unpack_bool", BATCH, || bits::unpack_bool(black_box(&src), 3, &mut out).unwrap());
}

fn spreading(bench: &mut Bench) {
    let mut random = Random(7);
    for (name, valid) in [("99 % valid", 99), ("50 % valid", 50), ("5 % valid", 5)] {
        let mut validity = vec![0; BATCH / 8];
        for i in 0..BATCH {
            bits::set(&mut validity, i, (random.next() >> 20) % 100 < valid).unwrap();
        }
        let dense = bits::count_ones(&validity, 0, BATCH).unwrap();
        macro_rules! size {
            ($type:ty) => {
                let mut values: Vec<$type> = vec![Default::default(); BATCH];
                bench.row(&format!("spread {} bytes, {name}", size_of::<$type>()), BATCH, || {
                    spread::in_place(black_box(&mut values), dense, &validity, 0).unwrap();
                });
            };
        }
        size!(u16);
        size!(u32);
        size!(u64);
        size!(u128);
    }
}

fn checks(bench: &mut Bench) {
    let bytes = Random(8).bytes(1 << 16);
    bench.row("crc32, a byte", bytes.len(), || {
        black_box(crc32(0, black_box(&bytes)));
    });
    let ascii = vec![b'a'; 1 << 16];
    let text = "Ünïcode, größer als ASCII — ".repeat(2000).into_bytes();
    bench.row("utf8 ASCII, a byte", ascii.len(), || assert!(utf8::valid(black_box(&ascii))));
    bench.row("utf8 mixed, a byte", text.len(), || assert!(utf8::valid(black_box(&text))));
}

/// Twenty million strings of 8 bytes, far more than the caches hold, into one batch after another.
fn from_memory(part: &str) {
    const NAME: &str = "strings::plain 8 bytes, 20 M from memory";
    if !NAME.contains(part) {
        return;
    }
    let value = *b"\x08\0\0\0a string"; // the length, then the bytes
    let input = value.repeat(20_000_000);
    let mut out = vec![0; BATCH];
    // The least time of each batch, summed: a busy machine interrupts some passes, but not always at the same batch.
    let mut least = vec![f64::MAX; 20_000_000usize.div_ceil(BATCH)];
    for _ in 0..10 {
        let mut at = 0;
        for least in &mut least {
            let start = Instant::now();
            black_box(strings::plain(black_box(&input), &mut at, 1, 0, 1 << 20, &mut out).unwrap());
            *least = start.elapsed().as_secs_f64().min(*least);
        }
        assert_eq!(at, input.len());
    }
    println!("{NAME:<44}{:>9.1} ms", least.iter().sum::<f64>() * 1e3);
}
