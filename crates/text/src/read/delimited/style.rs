//! Values that are written in other ways than usual: rewritten before they are parsed.

use alloc::vec::Vec;

use crate::options::{POINT, TextOptions};
use crate::parse::VALUE_BYTES_MAX;
use crate::{Scalar, TimestampFormat};

/// How numbers and times are written.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    decimal: u8,
    format: Option<TimestampFormat>,
}

/// How many times as long it takes, about, to rewrite a value and then look at it.
pub(crate) const REWRITE_TIMES: usize = 6;

/// What is done with the values of a column before they are parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewrite {
    /// Nothing.
    No,
    /// Its numbers have another decimal mark.
    Number,
    /// Its times may have another form.
    Time,
}

impl Style {
    /// `None` for the usual one.
    pub(crate) fn of(options: &TextOptions) -> Option<Style> {
        let is_usual = options.decimal == POINT && options.timestamp_format.is_none();
        (!is_usual).then(|| Style { decimal: options.decimal, format: options.timestamp_format.clone() })
    }

    /// What is done with values of a type.
    pub(crate) fn rewrite_of(&self, scalar: Scalar) -> Rewrite {
        match scalar {
            Scalar::Double | Scalar::Float | Scalar::Float16 | Scalar::Decimal { .. }
                if self.decimal != POINT =>
            {
                Rewrite::Number
            }
            Scalar::Date | Scalar::Timestamp { .. } | Scalar::Int96 if self.format.is_some() => Rewrite::Time,
            _ => Rewrite::No,
        }
    }

    /// A value as it is usually written.
    pub(crate) fn rewritten<'a>(
        &self,
        rewrite: Rewrite,
        text: &'a [u8],
        buffer: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        buffer.clear();
        match (rewrite, &self.format) {
            (Rewrite::Number, _) => {
                let mark = |byte: &u8| match *byte {
                    byte if byte == self.decimal => POINT,
                    // What is a point elsewhere is none here.
                    POINT => self.decimal,
                    byte => byte,
                };
                buffer.extend(text.iter().map(mark));
                buffer
            }
            // Times in ISO 8601 are read, too.
            (Rewrite::Time, Some(format)) => match format.rewrite(text.trim_ascii(), buffer) {
                Some(()) => buffer,
                None => text,
            },
            _ => text,
        }
    }

    /// A value of unknown type as it is usually written.
    pub(crate) fn usual<'a>(&self, text: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
        let is_number = |byte: &u8| {
            byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'e' | b'E' | b'.') || *byte == self.decimal
        };
        if text.len() > VALUE_BYTES_MAX {
            return text;
        }
        buffer.clear();
        // 1.2.2024 may be a date.
        if self.format.as_ref().is_some_and(|format| format.rewrite(text.trim_ascii(), buffer).is_some()) {
            return buffer;
        }
        let is_marked = |byte: &u8| *byte == self.decimal || *byte == POINT;
        match self.decimal != POINT && text.iter().any(is_marked) && text.iter().all(is_number) {
            true => self.rewritten(Rewrite::Number, text, buffer),
            false => text,
        }
    }
}
