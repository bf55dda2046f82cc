//! Random writes, split at random into SSTables and these into batches.

use marquetry_scylla::sstable::merge::MergeOptions;
use marquetry_scylla::sstable::murmur3_token;

use crate::form::{Form, Position, STATIC, Sstable, Writer, columns_of, form, is_complex, read, table};
use crate::model::{self, Cell, Deletion, Life, Marker, live_of_all, merge_all};
use crate::{Host, PLAIN, merged};

type Partition = model::Partition<Position, i64>;
type Row = model::Row<i64>;

/// Numbers that are the same in every run (splitmix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn small(&mut self, bound: u64) -> i64 {
        i64::try_from(self.below(bound)).expect("small")
    }
}

/// What cases are made of. Small numbers, so that much is equal.
#[derive(Debug, Clone, Copy)]
struct Mix {
    is_counter: bool,
    has_deletions: bool,
    has_ttls: bool,
    has_shadowables: bool,
    /// Rows are inserted, and hardly anything is deleted or expires: most batches can be copied.
    is_plain: bool,
    keys: u64,
    rows: u64,
}

fn time(random: &mut Random) -> u32 {
    u32::try_from(100 + random.below(4)).expect("small")
}

fn deletion(random: &mut Random) -> Deletion {
    (random.small(7), time(random))
}

fn life(random: &mut Random, mix: Mix) -> Life {
    match random.below(4) {
        _ if mix.is_plain && !random.one_in(20) => Life::Live,
        0 if mix.has_deletions => Life::Dead(time(random)),
        1 if mix.has_ttls => Life::Expiring(u32::try_from(1 + random.below(2)).expect("small"), time(random)),
        _ => Life::Live,
    }
}

fn place(random: &mut Random, mix: Mix) -> Position {
    (4 * (random.small(mix.rows) - 1), 4 * (random.small(mix.rows) - 1))
}

fn bound(random: &mut Random, mix: Mix) -> Position {
    let (first, second) = place(random, mix);
    let is_before = random.one_in(2);
    let end = if is_before { i64::MIN } else { i64::MAX };
    match random.below(4) {
        0 => (end, 0),
        1 => (first, end),
        _ => (first, second + if is_before { -1 } else { 1 }),
    }
}

/// A counter's value: shards of some of three nodes.
fn counter_value(random: &mut Random) -> Vec<u8> {
    let nodes: Vec<u8> = (1..=3).filter(|_| random.one_in(2)).collect();
    let mut value = u16::try_from(nodes.len()).expect("few").to_be_bytes().to_vec();
    for number in 0..nodes.len() {
        value.extend((0x8000 + u16::try_from(number).expect("few")).to_be_bytes());
    }
    for node in nodes {
        value.extend([node; 16]);
        value.extend(random.small(4).to_be_bytes());
        value.extend(random.small(3).to_be_bytes());
    }
    value
}

fn value(random: &mut Random, of: Form, mix: Mix) -> Vec<u8> {
    match of {
        _ if mix.is_counter => counter_value(random),
        Form::Set => Vec::new(),
        Form::Int if random.one_in(5) => Vec::new(),
        Form::Int => i32::try_from(random.small(3) - 1).expect("small").to_be_bytes().to_vec(),
        _ => vec![b'x'; usize::try_from(random.below(3)).expect("small")],
    }
}

fn row(random: &mut Random, mix: Mix, is_static: bool) -> Row {
    let mut row = Row::default();
    if (mix.is_plain || random.one_in(2)) && !is_static {
        let expiry = match life(random, mix) {
            Life::Expiring(ttl, local) => Some((ttl, local)),
            _ => None,
        };
        row.marker = Some(Marker { timestamp: random.small(7), expiry });
    }
    if mix.has_deletions && !mix.is_plain && random.one_in(4) && !is_static {
        row.deletion = Some(deletion(random));
    }
    if mix.has_shadowables && random.one_in(3) && !is_static {
        row.shadowable = Some(deletion(random));
    }
    for column in columns_of(is_static, mix.is_counter) {
        let of = form(column, mix.is_counter);
        if is_complex(of) && mix.has_deletions && !mix.is_plain && random.one_in(3) {
            row.complex.insert(column, deletion(random));
        }
        let count = if is_complex(of) { random.below(4) } else { random.below(2) };
        for _ in 0..count {
            let path = if is_complex(of) { random.small(4) - i64::from(of != Form::User) } else { 0 };
            let life = life(random, mix);
            let value = if matches!(life, Life::Dead(_)) { Vec::new() } else { value(random, of, mix) };
            row.cells.insert((column, path), Cell { timestamp: random.small(7), life, value });
        }
    }
    row
}

/// One write: a partition of which only some things were written.
fn write(random: &mut Random, mix: Mix) -> (Vec<u8>, Partition) {
    let key = i32::try_from(random.below(mix.keys)).expect("small").to_be_bytes().to_vec();
    let mut partition = Partition::default();
    match random.below(12) {
        0..4 if mix.is_plain && !random.one_in(30) => {}
        0 if mix.has_deletions && random.one_in(2) => partition.deletion = Some(deletion(random)),
        1 | 2 if mix.has_deletions => {
            let (one, other) = (bound(random, mix), bound(random, mix));
            if one != other {
                partition.ranges.push((one.min(other), one.max(other), deletion(random)));
            }
        }
        3 => {
            partition.rows.insert(STATIC, row(random, mix, true));
        }
        _ => {
            partition.rows.insert(place(random, mix), row(random, mix, false));
        }
    }
    partition.rows.retain(|_, row| !row.is_empty());
    (key, partition)
}

/// What writes come to, as a memtable has them.
fn flushed(writes: &[(Vec<u8>, Partition)], mix: Mix) -> Sstable {
    let sstable = |(key, partition): &(Vec<u8>, Partition)| {
        Sstable::from([((murmur3_token(key), key.clone()), partition.clone())])
    };
    merge_all(&writes.iter().map(sstable).collect::<Vec<_>>(), mix.is_counter)
}

fn batches(
    random: &mut Random,
    inputs: &[Sstable],
    mix: Mix,
) -> Vec<Vec<marquetry_scylla::sstable::batch::MutationBatch>> {
    let cuts = [0, 0, 2, 5, 30][usize::try_from(random.below(5)).expect("small")];
    let mut cut = || cuts > 0 && random.one_in(cuts);
    inputs.iter().map(|input| Writer::write(input, mix.is_counter, &mut cut)).collect()
}

fn options(live_at: Option<u32>) -> MergeOptions {
    let mut options = MergeOptions::default();
    options.live_at = live_at;
    options
}

/// Merges inputs as they are, alive at a time, and by an impatient host.
fn check(seed: u64, random: &mut Random, inputs: &[Sstable], mix: Mix, is_exact: bool) {
    let table = table(mix.is_counter);
    let all = merge_all(inputs, mix.is_counter);
    let cut = batches(random, inputs, mix);
    let host = Host { units: random.below(3) * 400, is_early: random.one_in(2) };
    let out = merged(&table, cut.clone(), &options(None), PLAIN).expect("sorted");
    assert_eq!(merged(&table, cut.clone(), &options(None), host).as_ref(), Ok(&out), "{seed} {host:?}");
    let found = read(&out, mix.is_counter);
    // What was in one input only is as it was; so it is merged with itself for the comparison.
    let found = if is_exact { found } else { merge_all(&[found], mix.is_counter) };
    assert!(found == all, "seed {seed}:\nfound    {found:#?}\nexpected {all:#?}\nof {inputs:#?}");
    let now = time(random);
    let out = merged(&table, cut, &options(Some(now)), host).expect("sorted");
    let (found, all) = (read(&out, mix.is_counter), live_of_all(&all, now));
    assert!(found == all, "seed {seed} at {now}:\nfound    {found:#?}\nexpected {all:#?}\nof {inputs:#?}");
}

fn mix(random: &mut Random) -> Mix {
    let kind = random.below(5);
    Mix {
        is_counter: false,
        has_deletions: kind != 0,
        has_ttls: kind > 1,
        has_shadowables: false,
        is_plain: kind == 4,
        keys: 1 + random.below(6),
        rows: 1 + random.below(5),
    }
}

/// An SSTable of random writes; its batches, cut at random.
pub(crate) fn flush(seed: u64) -> (Sstable, bool, Vec<marquetry_scylla::sstable::batch::MutationBatch>) {
    let mut random = Random::new(seed);
    let is_counter = random.one_in(4);
    let mix =
        Mix { is_counter, has_shadowables: !is_counter && random.one_in(3), keys: 200, ..mix(&mut random) };
    let mix = if is_counter { Mix { has_ttls: false, ..mix } } else { mix };
    let writes: Vec<_> = (0..1 + random.below(120)).map(|_| write(&mut random, mix)).collect();
    let sstable = merge_all(&[flushed(&writes, mix)], is_counter);
    let batches = batches(&mut random, std::slice::from_ref(&sstable), mix).remove(0);
    (sstable, is_counter, batches)
}

/// Writes that memtables have merged, as flushes of Cassandra are. What comes out is exactly what one memtable would have had.
#[test]
fn flushes_come_to_what_was_written() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mix = mix(&mut random);
        let most = if random.one_in(4) { 20 } else { 4 };
        let count = 1 + random.below(most);
        let writes: Vec<_> = (0..random.below(60)).map(|_| write(&mut random, mix)).collect();
        let mut split: Vec<Vec<_>> = (0..count).map(|_| Vec::new()).collect();
        for write in writes.iter().cloned() {
            split[usize::try_from(random.below(count)).expect("small")].push(write);
        }
        let inputs: Vec<Sstable> = split.iter().map(|writes| flushed(writes, mix)).collect();
        assert_eq!(
            merge_all(&inputs, mix.is_counter),
            flushed(&writes, mix),
            "seed {seed}: the model's own order"
        );
        check(seed, &mut random, &inputs, mix, true);
    }
}

/// Inputs in which deletions have not been applied, with counters, and shadowable deletions.
#[test]
fn inputs_need_not_be_merged_themselves() {
    for seed in 10_000..12_000 {
        let mut random = Random::new(seed);
        let is_counter = random.one_in(2);
        let mix = Mix {
            is_counter,
            has_shadowables: !is_counter,
            has_deletions: true,
            is_plain: false,
            ..mix(&mut random)
        };
        let mix = if is_counter { Mix { has_ttls: false, ..mix } } else { mix };
        let inputs: Vec<Sstable> = (0..1 + random.below(6))
            .map(|_| {
                let mut input = Sstable::new();
                for _ in 0..random.below(20) {
                    let (key, partition) = write(&mut random, mix);
                    let to = input.entry((murmur3_token(&key), key)).or_default();
                    to.deletion = to.deletion.or(partition.deletion);
                    to.rows.extend(partition.rows);
                    if to.ranges.is_empty() {
                        to.ranges = partition.ranges;
                    }
                }
                input
            })
            .collect();
        check(seed, &mut random, &inputs, mix, false);
    }
}
