//! Tables as a server would write them, for examples that measure.

#[path = "../../tests/sstable/craft.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
pub(crate) mod craft;

use std::time::{Duration, Instant};

use crate::files;
use craft::Craft;
use marquetry_base::{Budget, Bytes, Codec, Codecs, Limits, Machine, Status, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::Version;
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::statistics::Statistics;

pub(crate) const PARSE: &str = "sstable/data/mod.rs PARSE_PRICE";
pub(crate) const MOVE: &str = "sstable/data/mod.rs MOVE_PRICE";
pub(crate) const COPY: &str = "sstable/chunks.rs COPY_PRICE";
pub(crate) const CRC: &str = "sstable/elements.rs CRC_PRICE";
pub(crate) const CHUNK_BYTES: usize = 16 << 10;
/// A row with a write time, and all columns.
const ALL: u8 = 0x04 | 0x20;

pub(crate) struct Table {
    pub(crate) price: &'static str,
    pub(crate) name: &'static str,
    pub(crate) rows: usize,
    pub(crate) statistics: Statistics,
    pub(crate) data: Vec<u8>,
}

pub(crate) fn tables(count: usize) -> Vec<Table> {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let timestamp = |row: usize| Craft::default().vint(1_000_000 + row as u64 * 37 % 5_000_000);
    let pairs = {
        let mut data = Craft::default();
        for row in 0..count {
            let body = timestamp(row).raw(&[0x08]).raw(&(row as u32).to_be_bytes()).bytes;
            data = data.partition(&(row as u32).to_be_bytes()).row(&[ALL], &[], &body).end();
        }
        data.bytes
    };
    let clustered = {
        let mut data = Craft::default();
        for row in 0..count {
            if row % 10_000 == 0 {
                data = if row > 0 { data.end() } else { data };
                data = data.partition(&(row as u32).to_be_bytes());
            }
            let body = timestamp(row).raw(&[0x08]).raw(&(row as u32).to_be_bytes()).bytes;
            data = data.row(&[ALL], &Craft::default().vint(0).raw(&(row as u32).to_be_bytes()).bytes, &body);
        }
        data.end().bytes
    };
    let mixed_columns = [
        ("a", "Int32Type"),
        ("b", "LongType"),
        ("c", "DoubleType"),
        ("d", "TimestampType"),
        ("e", "BooleanType"),
        ("f", "UUIDType"),
        ("g", "UTF8Type"),
        ("h", "UTF8Type"),
        ("i", "SimpleDateType"),
        ("j", "FloatType"),
    ];
    let mixed = {
        let mut data = Craft::default();
        for row in 0..count / 2 {
            let number = row as u64 * 0x9e37_79b9;
            let text = |salt: usize| words[(row * 7 + salt) % 8].repeat(2 + (row + salt) % 3);
            let mut body = timestamp(row).raw(&[0x08]).raw(&(row as u32).to_be_bytes());
            body = body.raw(&[0x08]).raw(&number.to_be_bytes()).raw(&[0x08]).raw(&number.to_be_bytes());
            body = body.raw(&[0x08]).raw(&number.to_be_bytes()).raw(&[0x08, 1]);
            body = body.raw(&[0x08]).raw(&[row as u8; 16]).cell(text(1).as_bytes()).cell(text(5).as_bytes());
            body = body.cell(&[0x80, 0, 0x4d, row as u8]).raw(&[0x08]).raw(&(row as u32).to_be_bytes());
            data = data.partition(&number.to_be_bytes()).row(&[ALL], &[], &body.bytes).end();
        }
        data.bytes
    };
    let texts = |bytes: usize, rows: usize| {
        let mut data = Craft::default();
        for row in 0..rows {
            let text: String = (0..bytes / 3 + 1).map(|at| words[(row * 31 + at * 7) % 8]).collect();
            let body = timestamp(row).cell(&text.as_bytes()[..bytes]).bytes;
            data = data.partition(&(row as u32).to_be_bytes()).row(&[ALL], &[], &body).end();
        }
        data.bytes
    };
    let own_times = {
        let mut data = Craft::default();
        for row in 0..count / 2 {
            let own = |body: Craft| body.raw(&[0x02]).vint(row as u64).vint(60).vint(70).raw(&[0, 0, 0, 1]);
            let body = own(own(Craft::default())).bytes;
            data = data.partition(&(row as u32).to_be_bytes()).row(&[0x20], &[], &body).end();
        }
        data.bytes
    };
    let sets = {
        let mut data = Craft::default();
        for row in 0..count / 8 {
            let mut body = timestamp(row).vint(8);
            for element in 0..8_u32 {
                body = body.raw(&[0x0c]).long(&element.to_be_bytes());
            }
            data = data.partition(&(row as u32).to_be_bytes()).row(&[ALL], &[], &body.bytes).end();
        }
        data.bytes
    };
    let deleted = {
        let mut data = Craft::default();
        for row in 0..count / 10 {
            let mut body = timestamp(row).raw(&[0x08]).raw(&(row as u32).to_be_bytes());
            for _ in 0..9 {
                body = body.raw(&[0x0d]).vint(1_000_000 + row as u64 / 1000);
            }
            data = data.partition(&(row as u32).to_be_bytes()).row(&[ALL], &[], &body.bytes).end();
        }
        data.bytes
    };
    let ints = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(|name| (name, "Int32Type"));
    let int = [("v", "Int32Type")];
    let text = [("v", "UTF8Type")];
    let of = |price, name, rows, clustering: &[&str], columns: &[(&str, &str)], data| Table {
        price,
        name,
        rows,
        statistics: craft::statistics("Int32Type", clustering, &[], columns),
        data,
    };
    vec![
        of(PARSE, "(int, int)", count, &[], &int, pairs),
        of(PARSE, "(int, int, int), 10,000 rows a partition", count, &["Int32Type"], &int, clustered),
        of(PARSE, "10 mixed columns", count / 2, &[], &mixed_columns, mixed),
        of(PARSE, "text of 100", count / 2, &[], &text, texts(100, count / 2)),
        of(
            PARSE,
            "two ints with times of their own",
            count / 2,
            &[],
            &[("v", "Int32Type"), ("w", "Int32Type")],
            own_times,
        ),
        of(PARSE, "set of 8 ints", count / 8, &[], &[("v", "SetType(Int32Type)")], sets),
        of(PARSE, "10 ints, 9 deleted", count / 10, &[], &ints, deleted),
        of(CRC, "text of 1,000", count / 10, &[], &text, texts(1000, count / 10)),
        of(COPY, "text of 100,000", count / 1000, &[], &text, texts(100_000, count / 1000)),
        of(MOVE, "text of 5,000,000", count / 50_000 + 1, &[], &text, texts(5_000_000, count / 50_000 + 1)),
    ]
}

pub(crate) fn lz4(data: &[u8]) -> (Bytes, marquetry_scylla::sstable::compression_info::CompressionInfo) {
    let (file, info) = lz4_files(data);
    let reader =
        CompressionInfoReader::new(files::OBJECT, Version::parse("mc").expect("known"), Limits::DEFAULT);
    (file, files::one(reader, &info).expect("CompressionInfo.db"))
}

/// Data.db and CompressionInfo.db.
pub(crate) fn lz4_files(data: &[u8]) -> (Bytes, Bytes) {
    let mut compressor = StandardCodecs::default().compressor(Codec::Lz4Raw, None).expect("LZ4");
    let (mut file, mut offsets) = (Vec::new(), Vec::new());
    for chunk in data.chunks(CHUNK_BYTES) {
        offsets.push(file.len() as u64);
        let mut packed = vec![0; compressor.bound(chunk.len())];
        compressor.start(chunk.len()).expect("small");
        let (mut consumed, mut produced) = (0, 0);
        loop {
            let room = &mut packed[produced..];
            let progress =
                compressor.step(&chunk[consumed..], true, room, &mut Budget::unlimited()).expect("LZ4");
            consumed += progress.consumed;
            produced += progress.produced;
            if progress.status == Status::End {
                break;
            }
        }
        let start = file.len();
        file.extend((chunk.len() as u32).to_le_bytes());
        file.extend(&packed[..produced]);
        let sum = marquetry_kernels::crc32(0, &file[start..]);
        file.extend(sum.to_be_bytes());
    }
    let mut info = Craft::default().short(b"LZ4Compressor").raw(&0_u32.to_be_bytes());
    info = info.raw(&(CHUNK_BYTES as u32).to_be_bytes()).raw(&(data.len() as u64).to_be_bytes());
    info = info.raw(&(offsets.len() as u32).to_be_bytes());
    let mut info = info.bytes;
    offsets.iter().for_each(|offset| info.extend(offset.to_be_bytes()));
    (Bytes::from(file), Bytes::from(info))
}

/// The best of some rounds, step by step: rounds are the same to the last step, so their sum is what an idle processor takes.
#[derive(Default)]
pub(crate) struct Steps {
    /// The shortest time of each step, and the units that it charged.
    pub(crate) steps: Vec<(Duration, u64)>,
}

impl Steps {
    pub(crate) fn round(&mut self, run: impl FnOnce(&mut Vec<(Duration, u64)>)) {
        let mut steps = Vec::new();
        run(&mut steps);
        self.steps.resize(steps.len(), (Duration::MAX, 0));
        self.steps.iter_mut().zip(steps).for_each(|(best, step)| *best = (best.0.min(step.0), step.1));
    }

    /// The time and units of all steps.
    pub(crate) fn sum(&self) -> (Duration, u64) {
        self.steps.iter().fold((Duration::ZERO, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1))
    }

    pub(crate) fn longest(&self) -> Duration {
        self.steps.iter().map(|step| step.0).max().unwrap_or_default()
    }

    pub(crate) fn report(&self, price: &str, name: &str, packing: &str, rows: usize, bytes: usize) {
        let unit = |(time, units): (Duration, u64)| time.as_secs_f64() * 1e9 / units.max(1) as f64;
        let all = self.steps.iter().fold((Duration::ZERO, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
        let seconds = all.0.as_secs_f64();
        let dearest =
            self.steps.iter().filter(|step| step.1 >= 20_000).map(|&step| unit(step)).fold(0.0, f64::max);
        let longest = self.steps.iter().map(|step| step.0).max().unwrap_or_default();
        println!(
            "| {price} | {name} | {packing} | {:.1} | {:.0} | {:.2} | {dearest:.2} | {:.0} |",
            rows as f64 / seconds / 1e6,
            bytes as f64 / seconds / 1e6,
            unit(all),
            longest.as_secs_f64() * 1e6,
        );
    }
}

/// Drives a machine to its end.
pub(crate) fn drive<M: Machine>(
    machine: &mut M,
    bytes: &Bytes,
    steps: &mut Vec<(Duration, u64)>,
    mut take: impl FnMut(&mut M, M::Product),
) {
    loop {
        let mut budget = Budget::default();
        let begin = Instant::now();
        let step = machine.step(&mut budget).expect("good files");
        steps.push((begin.elapsed(), budget.spent()));
        match step {
            Step::Ready(product) => take(machine, product),
            Step::Done => return,
            Step::Yield => {}
            Step::Append(..) => panic!("a reader that writes"),
            Step::Need(demand) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => {
                            machine.supply_length(object, bytes.len() as u64).expect("a length")
                        }
                        Want::Range(object, range, _) => {
                            let part = bytes.slice(range.start as usize..range.end as usize);
                            machine.supply(object, range, part).expect("bytes");
                        }
                    }
                }
            }
        }
    }
}
