//! What reading a wide table's footer costs: nanoseconds of a column chunk, and of a unit of the budget. Best of several rounds.
//!
//! `cargo run --release -p marquetry-parquet --example footers [columns] [row groups]`

use std::time::Instant;

use marquetry_base::{Budget, Bytes, Limits, Machine, Object, Step, Want};
use marquetry_parquet::read::FooterReader;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn number(out: &mut Vec<u8>, head: u8, value: u64) {
    out.push(head);
    varint(out, value << 1);
}

fn text(out: &mut Vec<u8>, head: u8, text: &[u8]) {
    out.push(head);
    varint(out, text.len() as u64);
    out.extend(text);
}

fn list(out: &mut Vec<u8>, head: u8, kind: u8, length: u64) {
    out.extend([head, 0xf0 | kind]);
    varint(out, length);
}

/// A footer as Arrow C++ writes it: INT64 columns with statistics and encoding statistics.
fn file(columns: u64, groups: u64) -> Bytes {
    let mut out = b"PAR1".to_vec();
    number(&mut out, 0x15, 2);
    list(&mut out, 0x19, 12, columns + 1);
    number(&mut out, 0x35, 0);
    text(&mut out, 0x18, b"schema");
    number(&mut out, 0x15, columns);
    out.push(0);
    for column in 0..columns {
        number(&mut out, 0x15, 2);
        number(&mut out, 0x25, 1);
        text(&mut out, 0x18, format!("column_{column}").as_bytes());
        out.push(0);
    }
    number(&mut out, 0x16, groups * 1000);
    list(&mut out, 0x19, 12, groups);
    for _ in 0..groups {
        list(&mut out, 0x19, 12, columns);
        for column in 0..columns {
            number(&mut out, 0x26, 4);
            out.push(0x1c);
            number(&mut out, 0x15, 2);
            out.extend([0x19, 0x35, 0, 6, 16]);
            out.extend([0x19, 0x18]);
            let name = format!("column_{column}");
            varint(&mut out, name.len() as u64);
            out.extend(name.as_bytes());
            number(&mut out, 0x15, 1);
            for value in [1000, 8000, 7000] {
                number(&mut out, 0x16, value);
            }
            number(&mut out, 0x26, 4 + column);
            number(&mut out, 0x26, 4);
            out.push(0x1c);
            text(&mut out, 0x18, &[9; 8]);
            text(&mut out, 0x18, &[1; 8]);
            number(&mut out, 0x16, 3);
            text(&mut out, 0x28, &[9; 8]);
            text(&mut out, 0x18, &[1; 8]);
            out.push(0);
            out.extend([0x19, 0x2c]);
            for kind in [2, 0] {
                number(&mut out, 0x15, kind);
                number(&mut out, 0x15, 8);
                number(&mut out, 0x15, 1);
                out.push(0);
            }
            out.extend([0, 0]);
        }
        number(&mut out, 0x16, columns * 8000);
        number(&mut out, 0x16, 1000);
        out.push(0);
    }
    out.push(0);
    let length = u32::try_from(out.len()).expect("a footer below 4 GiB") - 4;
    out.extend(length.to_le_bytes());
    out.extend(b"PAR1");
    out.into()
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (columns, groups) = (arguments.next().unwrap_or(10_000), arguments.next().unwrap_or(10));
    let file = file(columns, groups);
    let mut best = f64::MAX;
    let (mut steps, mut units) = (0, 0);
    for _ in 0..15 {
        let mut footer = FooterReader::new(Object(0), Limits::DEFAULT);
        (steps, units) = (0, 0);
        let start = Instant::now();
        let metadata = loop {
            let mut budget = Budget::default();
            let step = footer.step(&mut budget).expect("a footer");
            steps += 1;
            units += budget.spent();
            match step {
                Step::Ready(metadata) => break metadata,
                Step::Need(demand) => {
                    for want in demand.wants {
                        match want {
                            Want::Length(object) => {
                                footer.supply_length(object, file.len() as u64).expect("its length");
                            }
                            Want::Range(object, range, _) => {
                                let [start, end] = [range.start, range.end]
                                    .map(|at| usize::try_from(at).expect("in memory"));
                                let bytes = file.slice(start..end);
                                footer.supply(object, range, bytes).expect("its bytes");
                            }
                        }
                    }
                }
                _ => {}
            }
        };
        best = best.min(start.elapsed().as_secs_f64() * 1e9);
        assert_eq!(metadata.rows, groups * 1000);
    }
    let (chunks, bytes) = (columns * groups, file.len());
    println!("{columns} columns, {groups} row groups, {bytes} bytes: {:.2} ms", best / 1e6);
    println!("a column chunk {:.0} ns, a byte {:.2} ns", best / chunks as f64, best / bytes as f64);
    println!("{steps} steps; a unit {:.2} ns", best / units as f64);
}
