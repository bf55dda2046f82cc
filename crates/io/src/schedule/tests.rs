//! Schedules by themselves: which ranges are requested, in which order, and what is reported to a machine.

use marquetry_base::{ErrorKind, Input};

use super::*;

const A: Object = Object(1);
const B: Object = Object(2);

/// The bytes of every object: each is the low byte of its offset.
fn bytes(range: Range<u64>) -> Bytes {
    range.map(|at| u8::try_from(at % 251).unwrap()).collect::<Vec<_>>().into()
}

fn demand(wants: &[(Object, Range<u64>, Priority)]) -> Demand {
    let mut demand = Demand::default();
    for (object, range, priority) in wants {
        demand.push(Want::Range(*object, range.clone(), *priority));
    }
    demand
}

fn schedule(piece_bytes: u64, ahead_bytes: u64) -> Schedule {
    Schedule::new(ReadAhead { piece_bytes, ahead_bytes })
}

/// All that there is room for now.
fn begun(schedule: &mut Schedule) -> Vec<(Object, Range<u64>)> {
    std::iter::from_fn(|| schedule.begin())
        .map(|ask| match ask {
            Ask::Read(object, range) => (object, range),
            Ask::Length(object) => panic!("the length of {object:?}"),
        })
        .collect()
}

fn arrive(schedule: &mut Schedule, object: Object, range: Range<u64>) {
    schedule.arrived(object, &range, Ok(bytes(range.clone())));
}

/// Everything that is reported to the machine now; errors as `None`.
fn told(schedule: &mut Schedule) -> Vec<(Object, Range<u64>, bool)> {
    std::iter::from_fn(|| schedule.answer())
        .map(|answer| match answer {
            Answer::Bytes(object, range, Ok(found)) => {
                assert_eq!(found, bytes(range.clone()));
                (object, range, true)
            }
            Answer::Bytes(object, range, Err(_)) => (object, range, false),
            Answer::Length(object, _) => panic!("the length of {object:?}"),
        })
        .collect()
}

use Priority::{Now, Soon};

#[test]
fn long_ranges_are_several_reads_and_close_ones_are_one() {
    let mut long = schedule(100, 1000);
    long.want(demand(&[(A, 10..260, Now)])).unwrap();
    assert_eq!(begun(&mut long), [(A, 10..110), (A, 110..210), (A, 210..260)]);

    let mut close = schedule(1 << 20, 1 << 30);
    let near = 10 + GAP_BYTES_MAX;
    close
        .want(demand(&[(B, 0..9, Now), (A, 0..10, Now), (A, near..near + 5, Soon), (B, 9..12, Soon)]))
        .unwrap();
    assert_eq!(begun(&mut close), [(A, 0..near + 5), (B, 0..12)]);

    let mut far = schedule(1 << 20, 1 << 30);
    far.want(demand(&[(A, 0..10, Now), (A, near + 1..near + 5, Now), (B, 0..12, Soon)])).unwrap();
    assert_eq!(begun(&mut far), [(A, 0..10), (A, near + 1..near + 5), (B, 0..12)]);

    // Overlapping, nested, the same.
    let mut same = schedule(1 << 20, 1 << 30);
    same.want(demand(&[(A, 0..100, Now), (A, 10..20, Soon), (A, 90..120, Now), (A, 0..100, Now)])).unwrap();
    assert_eq!(begun(&mut same), [(A, 0..120)]);
}

#[test]
fn what_is_needed_now_comes_first() {
    let mut schedule = schedule(10, 1000);
    schedule.want(demand(&[(A, 500_000..500_010, Now), (A, 0..20, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 500_000..500_010), (A, 0..10), (A, 10..20)]);
}

#[test]
fn reads_are_begun_as_there_is_room() {
    let mut schedule = schedule(10, 25);
    schedule.want(demand(&[(A, 0..40, Now), (B, 0..30, Soon)])).unwrap();
    // As many of each kind as there is room for.
    assert_eq!(begun(&mut schedule), [(A, 0..10), (A, 10..20)]);
    assert!(schedule.has_more());
    // What comes out of turn needs its room still.
    arrive(&mut schedule, A, 10..20);
    assert_eq!((told(&mut schedule), begun(&mut schedule)), (vec![], vec![]));
    arrive(&mut schedule, A, 0..10);
    assert_eq!(told(&mut schedule), [(A, 0..10, true), (A, 10..20, true)]);
    // What is worth fetching early has room of its own.
    assert_eq!(begun(&mut schedule), [(A, 20..30), (A, 30..40), (B, 0..10), (B, 10..20)]);
    // One read is in flight however small the room.
    let mut tight = self::schedule(10, 1);
    tight.want(demand(&[(A, 0..40, Now), (B, 0..30, Soon)])).unwrap();
    assert_eq!(begun(&mut tight), [(A, 0..10)]);
}

#[test]
fn what_came_early_waits_until_it_is_needed() {
    let mut schedule = schedule(10, 100);
    schedule.want(demand(&[(A, 0..10, Now), (B, 0..20, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule).len(), 3);
    arrive(&mut schedule, B, 10..20);
    assert_eq!(told(&mut schedule), []);
    arrive(&mut schedule, A, 0..10);
    assert_eq!(told(&mut schedule), [(A, 0..10, true)]);
    // Needed in part: that part is supplied, and the rest stays. What is on its way is not read again.
    schedule.want(demand(&[(B, 0..15, Now), (B, 15..30, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(B, 20..30)]);
    assert_eq!(told(&mut schedule), []);
    arrive(&mut schedule, B, 0..10);
    assert_eq!(told(&mut schedule), [(B, 0..10, true), (B, 10..15, true)]);
    schedule.want(demand(&[(B, 15..30, Now)])).unwrap();
    assert_eq!((begun(&mut schedule), told(&mut schedule)), (vec![], vec![(B, 15..20, true)]));
    arrive(&mut schedule, B, 20..30);
    assert_eq!(told(&mut schedule), [(B, 20..30, true)]);
}

#[test]
fn what_is_not_wanted_any_more_gives_way() {
    let mut schedule = schedule(10, 20);
    schedule.want(demand(&[(A, 0..10, Now), (B, 0..20, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 0..10), (B, 0..10), (B, 10..20)]);
    arrive(&mut schedule, A, 0..10);
    told(&mut schedule);
    // Not mentioned: kept as long as its room is not needed, for the machine may come back to it.
    schedule.want(demand(&[(A, 10..20, Now)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 10..20)]);
    assert!(schedule.is_flying(B, &(0..10)));
    schedule.want(demand(&[(A, 10..20, Now), (A, 700_000..700_010, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 700_000..700_010)]);
    assert!(!schedule.is_flying(B, &(0..10)) && schedule.is_flying(B, &(10..20)));
    // It comes all the same, and is dropped.
    arrive(&mut schedule, B, 0..10);
    schedule.want(demand(&[(B, 0..10, Now)])).unwrap();
    assert_eq!((told(&mut schedule), begun(&mut schedule)), (vec![], vec![(B, 0..10)]));
}

#[test]
fn what_was_given_is_not_read_again_by_a_machine_that_repeats_itself() {
    let mut schedule = schedule(10, 100);
    let whole = demand(&[(A, 0..20, Now)]);
    schedule.want(whole.clone()).unwrap();
    assert_eq!(begun(&mut schedule).len(), 2);
    arrive(&mut schedule, A, 0..10);
    assert_eq!(told(&mut schedule), [(A, 0..10, true)]);
    schedule.want(whole.clone()).unwrap();
    assert_eq!(begun(&mut schedule), []);
    arrive(&mut schedule, A, 10..20);
    assert_eq!(told(&mut schedule), [(A, 10..20, true)]);
    let error = schedule.want(whole.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    // One that asks for it after something else has released it.
    schedule.want(demand(&[(A, 0..20, Now), (B, 0..10, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 0..10), (A, 10..20), (B, 0..10)]);
}

#[test]
fn demands_for_nothing_are_refused() {
    for nothing in [demand(&[]), demand(&[(A, 0..10, Soon)])] {
        assert_eq!(schedule(10, 10).want(nothing).unwrap_err().kind(), ErrorKind::Internal);
    }
}

#[test]
fn lengths_are_asked_for_once() {
    let mut schedule = schedule(10, 10);
    schedule.want(Demand::length(A)).unwrap();
    assert_eq!((schedule.begin(), schedule.begin()), (Some(Ask::Length(A)), None));
    schedule.length_arrived(A, Ok(7));
    assert_eq!((schedule.answer(), schedule.answer()), (Some(Answer::Length(A, Ok(7))), None));
    assert_eq!(schedule.want(Demand::length(A)).unwrap_err().kind(), ErrorKind::Internal);
    schedule.want(demand(&[(A, 0..7, Now)])).unwrap();
    schedule.want(Demand::length(A)).unwrap();
    assert_eq!(schedule.begin(), Some(Ask::Length(A)));
    schedule.length_arrived(A, Err(Error::io("gone")));
    assert_eq!(schedule.answer(), Some(Answer::Length(A, Err(Error::io("gone")))));
}

#[test]
fn each_range_gets_the_error_that_is_its_own() {
    let gone = || Err(Error::io("gone"));
    let mut schedule = schedule(100, 1000);
    schedule.want(demand(&[(A, 0..10, Now), (A, 20..30, Now), (A, 30..40, Soon)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 0..40)]);
    schedule.arrived(A, &(0..40), gone());
    assert_eq!(told(&mut schedule), []);
    assert_eq!(begun(&mut schedule), [(A, 0..10), (A, 20..30), (A, 30..40)]);
    // What is worth fetching early may fail without a word, until it is needed.
    schedule.arrived(A, &(30..40), gone());
    arrive(&mut schedule, A, 0..10);
    arrive(&mut schedule, A, 20..30);
    assert_eq!(told(&mut schedule), [(A, 0..10, true), (A, 20..30, true)]);
    schedule.want(demand(&[(A, 30..40, Now)])).unwrap();
    assert_eq!(told(&mut schedule), [(A, 30..40, false)]);
}

#[test]
fn a_source_that_gives_less_is_broken() {
    let mut schedule = schedule(100, 1000);
    schedule.want(demand(&[(A, 0..10, Now)])).unwrap();
    assert_eq!(begun(&mut schedule), [(A, 0..10)]);
    schedule.arrived(A, &(0..10), Ok(bytes(0..9)));
    let Some(Answer::Bytes(A, range, Err(error))) = schedule.answer() else { panic!() };
    assert_eq!((range, error.kind()), (0..10, ErrorKind::Internal));
}

#[test]
fn a_demand_for_a_great_many_ranges_is_answered_by_and_by() {
    let mut schedule = schedule(1 << 20, 1 << 20);
    let step = 2 * GAP_BYTES_MAX;
    let wants: Vec<_> = (0..3000).map(|number| (A, number * step..number * step + 1, Now)).collect();
    let mut left = wants.as_slice();
    for expected in [1024, 1024, 952] {
        schedule.want(demand(left)).unwrap();
        let reads = begun(&mut schedule);
        assert_eq!(reads.len(), expected);
        for (object, range) in reads {
            arrive(&mut schedule, object, range);
        }
        assert_eq!(told(&mut schedule).len(), expected);
        left = &left[expected..];
    }
}

/// A machine of one object that reads ranges one after the other, in slices, and wants the next ones early.
struct Slices {
    ranges: Vec<Range<u64>>,
    input: Input,
    window: u64,
    repeats: bool,
}

impl Slices {
    /// Consumes what is there; the demand, unless all is read.
    fn demand(&mut self) -> Option<Demand> {
        while let Some(range) = self.ranges.first_mut() {
            let end = (range.start + 7).min(range.end);
            match self.input.contiguous(range.start..end).unwrap() {
                Some(found) => {
                    assert_eq!(found, bytes(range.start..end));
                    self.input.release(range.start..end);
                    range.start = end;
                    if range.is_empty() {
                        self.ranges.remove(0);
                    }
                }
                None => break,
            }
        }
        let mut ranges = self.ranges.iter().cloned();
        let mut first = ranges.next()?;
        if !self.repeats {
            first = self.input.missing(first).unwrap();
        }
        first.end = first.end.min(first.start + self.window);
        let mut demand = demand(&[(A, first, Now)]);
        for range in ranges.take(4) {
            demand.push(Want::Range(A, range.start..range.end.min(range.start + self.window), Soon));
        }
        Some(demand)
    }
}

#[test]
fn any_machine_gets_all_that_it_asks_for_in_any_order_of_arrival() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 11) % bound
    };
    for _ in 0..400 {
        let piece = 1 + below(60);
        let ahead = below(400);
        let mut schedule = schedule(piece, ahead);
        let ranges = (0..1 + below(8)).map(|_| {
            let start = below(300) * if below(2) == 0 { 1 } else { 1000 };
            start..start + 1 + below(150)
        });
        let ranges = ranges.collect();
        let mut machine =
            Slices { ranges, input: Input::new(), window: 7 + below(200), repeats: below(2) == 0 };
        let mut flying: Vec<(Object, Range<u64>)> = Vec::new();
        let mut reads = 0;
        while let Some(demand) = machine.demand() {
            schedule.want(demand).unwrap();
            let answers = loop {
                let more = begun(&mut schedule);
                reads += more.len();
                assert!(more.iter().all(|(_, range)| range.end - range.start <= piece));
                flying.extend(more);
                flying.retain(|(object, range)| schedule.is_flying(*object, range));
                let bytes: u64 = flying.iter().map(|(_, range)| range.end - range.start).sum();
                assert!(bytes <= 2 * ahead.max(piece) + 2 * piece, "{bytes} of {ahead}");
                let answers: Vec<_> = std::iter::from_fn(|| schedule.answer()).collect();
                if !answers.is_empty() {
                    break answers;
                }
                assert!(!flying.is_empty(), "the machine waits for what nobody reads");
                let (object, range) = flying.swap_remove(usize_of(below(u64_of(flying.len()))).unwrap());
                arrive(&mut schedule, object, range);
            };
            for answer in answers {
                let Answer::Bytes(A, range, Ok(bytes)) = answer else { panic!("{answer:?}") };
                machine.input.supply(range.start, bytes).unwrap();
            }
        }
        assert!(reads < 4000, "{reads} reads");
    }
}
