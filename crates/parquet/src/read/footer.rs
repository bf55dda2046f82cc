//! From a file's end to its metadata.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Limit, Limits, Machine, Object, Priority, Release, Result,
    Step, Want, check_supply, release_all,
};

use super::locator::LocatorReader;
use crate::format::locator::{ANNOUNCED_BYTES, Announcement, COVERED_BYTES_MAX};
use crate::format::{
    FILE_BYTES_MIN, FOOTER_TAIL_BYTES, FileMetaData, FooterColumns, FooterParser, MAGIC, MAGIC_ENCRYPTED,
};
use crate::going::Going;

/// Bytes at the file's end that are asked for first. Most footers are smaller, and one request is cheaper than two.
const TAIL_GUESS_BYTES: u64 = 64 << 10;

/// Bytes of a long footer that are asked for at a time: they are released as they are parsed.
const WINDOW_BYTES: u64 = 8 << 20;

/// Reads the footer: one product, the metadata.
///
/// Asks for the object's length, then for its end, then, if the footer is longer than 64 KiB, for the rest of it, 8
/// MiB at a time, which it parses as it arrives, in any pieces.
///
/// It may be read for [some columns](FooterReader::of_columns), as if the file had no others.
#[derive(Debug)]
pub struct FooterReader {
    object: Object,
    limits: Limits,
    /// The columns that it is read for; all of them if `None`.
    columns: Option<FooterColumns>,
    length: Option<u64>,
    input: Input,
    expects: Expects,
    /// Once it has failed, what was read until then stays, which may be much: its host can release it.
    failed: Failed,
}

#[derive(Debug)]
enum Expects {
    /// The object's length and the last bytes.
    Tail,
    /// The footer's bytes, up to the end; they are parsed as they arrive.
    Footer { parser: Box<FooterParser>, end: u64 },
    /// The blocks of a locator; where the footer is, should that not be enough.
    Located { locator: Box<LocatorReader>, footer: Range<u64> },
    /// Nothing, until the locator is released; then what it found is handed out, or the footer is read.
    Released { locator: Box<LocatorReader>, found: Option<FileMetaData>, footer: Range<u64> },
    /// Nothing: the metadata was handed out.
    Nothing,
}

impl FooterReader {
    /// A reader of the footer of `object`.
    pub fn new(object: Object, limits: Limits) -> FooterReader {
        FooterReader {
            object,
            limits,
            columns: None,
            length: None,
            input: Input::new(),
            expects: Expects::Tail,
            failed: Failed::default(),
        }
    }

    /// A reader of what the footer of `object` says of some columns.
    ///
    /// Its product is the metadata of a file that has only these columns, in the order of the file: the schema has no
    /// other fields, row groups no other column chunks, and what they are sorted by ends before the first column that
    /// is left out. Everything that is read by it (batches, the page index, rows that are searched for) has the same
    /// rows. What is left out is skipped without being parsed, and is not checked.
    ///
    /// A footer written with it describes a file in which there are bytes of no column.
    ///
    /// # Errors
    ///
    /// The machine's steps return `Misuse` if the file has no such column, unless that is
    /// [allowed](FooterColumns::allow_missing).
    pub fn of_columns(object: Object, limits: Limits, columns: FooterColumns) -> FooterReader {
        FooterReader { columns: Some(columns), ..FooterReader::new(object, limits) }
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Arc<FileMetaData>>> {
        loop {
            match &mut self.expects {
                Expects::Tail => {
                    let Some(length) = self.length else {
                        return Ok(Step::Need(Demand::length(self.object)));
                    };
                    let tail = length - FOOTER_TAIL_BYTES..length;
                    let Some(bytes) = self.input.contiguous(tail.clone())? else {
                        let guess = length.saturating_sub(TAIL_GUESS_BYTES)..length;
                        return Ok(Step::Need(self.demand(guess)));
                    };
                    let footer_bytes = self.check_tail(&bytes, tail.start)?;
                    let footer = tail.start - footer_bytes..tail.start;
                    self.expects = match self.locator(&footer)? {
                        Some(locator) => Expects::Located { locator: Box::new(locator), footer },
                        None => self.parse(footer),
                    };
                }
                Expects::Located { locator, .. } => match locator.step(&mut self.input, budget) {
                    Going::Done(found) => {
                        let expects = core::mem::replace(&mut self.expects, Expects::Nothing);
                        if let Expects::Located { locator, footer } = expects {
                            self.expects = Expects::Released { locator, found, footer };
                        }
                    }
                    Going::Need(ranges) => {
                        let mut demand = Demand::default();
                        for range in ranges {
                            demand.push(Want::Range(self.object, range, Priority::Now));
                        }
                        return Ok(Step::Need(demand));
                    }
                    Going::Yield => return Ok(Step::Yield),
                },
                Expects::Released { locator, found, footer } => {
                    if !locator.release(budget) {
                        return Ok(Step::Yield);
                    }
                    if let Some(found) = found.take() {
                        self.input.clear();
                        self.expects = Expects::Nothing;
                        return Ok(Step::Ready(Arc::new(found)));
                    }
                    let footer = footer.clone();
                    self.expects = self.parse(footer);
                }
                Expects::Footer { parser, end } => match parser.step(&mut self.input, budget)? {
                    Going::Done(metadata) => {
                        self.input.clear();
                        self.expects = Expects::Nothing;
                        return Ok(Step::Ready(metadata));
                    }
                    Going::Need(at) => {
                        let some = at..at.saturating_add(WINDOW_BYTES).min(*end);
                        return Ok(Step::Need(self.demand(some)));
                    }
                    Going::Yield => return Ok(Step::Yield),
                },
                Expects::Nothing => return Ok(Step::Done),
            }
        }
    }

    /// The locator of the columns that are wanted, if the footer's end announces one, and the footer is not here already.
    fn locator(&self, footer: &Range<u64>) -> Result<Option<LocatorReader>> {
        let Some(columns) = &self.columns else { return Ok(None) };
        if self.input.missing(footer.clone()).is_none() {
            return Ok(None);
        }
        let bytes = u64_of(ANNOUNCED_BYTES + COVERED_BYTES_MAX).min(footer.end - footer.start);
        let Some(end) = self.input.contiguous(footer.end - bytes..footer.end)? else { return Ok(None) };
        let found = Announcement::read(&end, footer.start, footer.end - footer.start);
        Ok(found.and_then(|found| LocatorReader::new(found, self.limits, columns)))
    }

    /// Begins to read the footer itself.
    fn parse(&self, footer: Range<u64>) -> Expects {
        let end = footer.end;
        let parser = match &self.columns {
            Some(columns) => FooterParser::of_columns(footer, self.limits, columns.clone()),
            None => FooterParser::new(footer, self.limits),
        };
        Expects::Footer { parser: Box::new(parser), end }
    }

    /// Checks the footer's length and the magic; says the footer's length.
    fn check_tail(&self, tail: &Bytes, tail_start: u64) -> Result<u64> {
        let length: [u8; 4] = tail[..4].try_into().unwrap_or_default();
        let magic: [u8; 4] = tail[4..].try_into().unwrap_or_default();
        if magic == MAGIC_ENCRYPTED {
            return Err(Error::encrypted("a file with an encrypted footer").at_offset(tail_start + 4));
        }
        if magic != MAGIC {
            return Err(Error::corrupt("not a Parquet file, or one cut off: it does not end with PAR1")
                .at_offset(tail_start + 4));
        }
        let length = u64::from(u32::from_le_bytes(length));
        // The leading magic stands before the footer; so nothing is added to a length from the file before it is checked.
        let room = tail_start - MAGIC.len() as u64;
        if length > room {
            return Err(Error::corrupt(alloc::format!(
                "a footer of {length} bytes in a file that has room for {room}"
            ))
            .at_offset(tail_start));
        }
        self.limits.check(Limit::FooterBytes, length).map_err(|error| error.at_offset(tail_start))?;
        Ok(length)
    }

    fn demand(&self, range: Range<u64>) -> Demand {
        match self.input.missing(range) {
            Some(missing) => Demand::now(self.object, missing),
            None => Demand::default(),
        }
    }

    fn check_object(&self, object: Object) -> Result<()> {
        if object == self.object {
            Ok(())
        } else {
            Err(Error::misuse("an object that is not this machine's"))
        }
    }
}

/// For a reader that is no longer wanted, or has failed.
impl Release for FooterReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        if let Expects::Released { found, .. } = &mut self.expects
            && !found.release(budget)
        {
            return false;
        }
        let mut none = ();
        let parser: &mut dyn Release = match &mut self.expects {
            Expects::Footer { parser, .. } => parser,
            Expects::Located { locator, .. } | Expects::Released { locator, .. } => locator,
            Expects::Tail | Expects::Nothing => &mut none,
        };
        release_all(&mut [parser, &mut self.input], budget)
    }
}

impl Machine for FooterReader {
    type Product = Arc<FileMetaData>;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Arc<FileMetaData>>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.check_object(object)?;
        check_supply(&range, &bytes, self.length)?;
        match self.expects {
            Expects::Tail | Expects::Footer { .. } | Expects::Located { .. } if !self.failed.is_set() => {
                self.input.supply(range.start, bytes)
            }
            _ => Ok(()),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.check_object(object)?;
        match self.length {
            Some(known) if known != length => Err(Error::misuse("an object whose length changes")),
            _ if length < FILE_BYTES_MIN => {
                let error = Error::corrupt(alloc::format!(
                    "a Parquet file of {length} bytes: the smallest has {FILE_BYTES_MIN}"
                ));
                self.failed.set(error);
                Ok(())
            }
            _ => {
                self.length = Some(length);
                Ok(())
            }
        }
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object {
            self.failed.set(reason);
        }
    }
}
