//! Records as events, right and wrong, shredded into columns.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, ErrorKind, Result};
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{self, Summing, tell};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::record::{Program, RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::{Plan as _, Schema};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::host::{self, LIMITS, Told, check_error};
use crate::meter;
use crate::plan::{Only, Plan};
use crate::tree::Tree;

/// The records of any table: told to a shredder they are that table again. And events in an order that is none, which is an error or
/// a table, and never a panic.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let read = host::options(choices);
    let tree = Tree::choose(choices, 4);
    let rows_max = choices.pick(&[20, 3, 100]);
    let plan = Plan::choose(tree, rows_max, Only::default(), choices);
    let bytes = plan.write();
    let Ok(metadata) = host::footer(&bytes, LIMITS, Manner::KIND) else { return };
    let schema = Arc::clone(&metadata.schema);
    let options = ShredOptions {
        batch_rows: choices.pick(&[8192, 1, 2, 7, 64]),
        batch_bytes: choices.pick(&[16 << 20, 1, 100]),
        layout: choices.pick(&[Layout::Dense, Layout::Spaced]),
    };
    let shredder = match Shredder::plan(Arc::clone(&schema), None, options).at_once() {
        Ok(shredder) => shredder,
        Err(error) => return check_error(&error),
    };
    let mut relay = Relay::new(shredder, &schema, choices);
    if choices.once_in(3) {
        return relay.any_events(choices);
    }
    if choices.once_in(2) {
        relay.wrong = Some((choices.below(300), choices.bytes(8).to_vec()));
    }
    let Ok(mut reader) = host::reader(&metadata, &read) else { return };
    let program = Arc::clone(relay.shredder.program());
    let mut result = Ok(());
    let whole = hostile::run(&mut reader, FILE, &bytes, Manner::KIND, |batch| {
        if result.is_ok() {
            result = tell(&program, &batch, &mut relay, relay_budget(&read)).and_then(|()| relay.take());
        }
        Ok(())
    });
    match result {
        Ok(()) if relay.wrong.is_none() && whole.is_ok() => {
            relay.told.check_expected(&plan.expected);
        }
        Ok(()) => {}
        Err(error) => relay.check_failed(&error),
    }
}

/// Units of a step of the records, which the number of rows decides.
fn relay_budget(read: &marquetry_parquet::read::ReadOptions) -> u64 {
    if read.batch_rows < 64 { 500 } else { Budget::DEFAULT_UNITS }
}

/// Why there is no batch in the middle of a row.
const MIDDLE: &str = "a batch that is taken in the middle of a row";

/// Hands events on to a shredder, not always as they came, and takes its batches.
struct Relay {
    shredder: Shredder,
    schema: Arc<Schema>,
    told: Told,
    /// Events so far.
    events: usize,
    /// The event that is another, and by which choices.
    wrong: Option<(usize, Vec<u8>)>,
    is_shared: bool,
    budget: u64,
}

impl Relay {
    fn new(shredder: Shredder, schema: &Arc<Schema>, choices: &mut Choices<'_>) -> Relay {
        let told = Told::new(schema.leaves().len());
        let (is_shared, budget) = (choices.once_in(2), host::budget(choices));
        Relay { shredder, schema: Arc::clone(schema), told, events: 0, wrong: None, is_shared, budget }
    }

    /// Events as they come, of any field and kind.
    fn any_events(&mut self, choices: &mut Choices<'_>) {
        for _ in 0..choices.below(200) {
            if let Err(error) = one(&mut self.shredder, choices) {
                return self.check_failed(&error);
            }
            if choices.once_in(20)
                && let Err(error) = self.take()
            {
                return self.check_failed(&error);
            }
        }
    }

    /// Takes a batch, and looks at it: also as the records that it is now. In the middle of a row there is none, which is no failure.
    fn take(&mut self) -> Result<()> {
        let batch = loop {
            let budget = &mut Budget::new(self.budget);
            match meter::call("Shredder::take", 0, budget, |budget| self.shredder.take(budget)) {
                Ok(Some(batch)) => break batch,
                Ok(None) => {}
                Err(error) if error.message() == MIDDLE => {
                    assert_eq!(error.kind(), ErrorKind::Misuse);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        };
        if batch.rows > 0 {
            self.look(&batch);
        }
        Ok(())
    }

    fn look(&mut self, batch: &Batch) {
        records::check_batch(&self.schema, batch);
        if !self.told.is_cut {
            let added = self.told.add(&self.schema, batch);
            self.told.end(added);
        }
        let program: &Program = self.shredder.program();
        let mut sums = Summing::new(&self.schema, program);
        tell(program, batch, &mut sums, 5_000).expect("records of what was shredded");
        sums.finish();
    }

    /// An error stays, whatever comes.
    fn check_failed(&mut self, error: &Error) {
        let kinds = [ErrorKind::Misuse, ErrorKind::Conversion, ErrorKind::Corrupt, ErrorKind::LimitExceeded];
        assert!(kinds.contains(&error.kind()) && !error.message().is_empty(), "{error:?}");
        for event in 0..8_u8 {
            let again = one(&mut self.shredder, &mut Choices::new(&[event, 0, event]));
            assert_eq!(again.as_ref(), Err(error), "an error that does not stay");
        }
        assert_eq!(self.shredder.take(&mut Budget::new(0)).err().as_ref(), Some(error));
    }

    /// Hands an event on, or another one.
    fn event(&mut self, event: impl Fn(&mut Shredder) -> Result<()>) -> Result<()> {
        self.events += 1;
        match &self.wrong {
            Some((at, choices)) if *at == self.events => {
                let choices = &mut Choices::new(choices);
                match choices.byte() % 3 {
                    0 => Ok(()),
                    1 => event(&mut self.shredder).and_then(|()| event(&mut self.shredder)),
                    _ => one(&mut self.shredder, choices),
                }
            }
            _ => event(&mut self.shredder),
        }
    }
}

/// An event of any kind, of any field, also of one that is not there.
fn one(shredder: &mut Shredder, choices: &mut Choices<'_>) -> Result<()> {
    let kind = choices.byte() % 12;
    let field = choices.below(shredder.program().fields().len() + 1);
    match kind {
        0 => shredder.start_record(),
        1 => shredder.end_record(),
        2 => shredder.start_struct(field),
        3 => shredder.end_struct(field),
        4 => shredder.start_list(field),
        5 => shredder.end_list(field),
        6 => shredder.start_map(field),
        7 => shredder.end_map(field),
        8 => shredder.null(field),
        _ => {
            let bytes = [7; 40];
            let value = match choices.byte() % 6 {
                0 => Value::Boolean(true),
                1 => Value::Int32(-5),
                2 => Value::Int64(1 << 40),
                3 => Value::Float(0.5),
                4 => Value::Double(0.25),
                _ => Value::Bytes(&bytes[..choices.below(41)]),
            };
            shredder.value(field, value)
        }
    }
}

impl RecordSink for Relay {
    fn start_record(&mut self) -> Result<()> {
        self.event(Shredder::start_record)
    }

    fn end_record(&mut self) -> Result<()> {
        self.event(Shredder::end_record)?;
        match self.shredder.is_full() && self.wrong.is_none() {
            true => self.take(),
            false => Ok(()),
        }
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.start_struct(field))
    }

    fn end_struct(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.end_struct(field))
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.start_list(field))
    }

    fn end_list(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.end_list(field))
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.start_map(field))
    }

    fn end_map(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.end_map(field))
    }

    fn null(&mut self, field: usize) -> Result<()> {
        self.event(|shredder| shredder.null(field))
    }

    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        let is_shared = self.is_shared;
        let value = match value {
            Value::Int32(number) if is_planted(Canary::Bytes) && self.events % 7 == 3 => {
                Value::Int32(number ^ 1)
            }
            value => value,
        };
        self.event(|shredder| match value {
            Value::Bytes(bytes) if is_shared => shredder.shared(field, Bytes::copy_from_slice(bytes)),
            value => shredder.value(field, value),
        })
    }
}
