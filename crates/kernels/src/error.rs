//! The errors of kernels.

use core::fmt;

/// Why a kernel did nothing. The only causes are slices that do not fit together, and data that point outside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A bit or byte width that the kernel does not support.
    Width {
        /// The requested width.
        width: usize,
    },
    /// An input, or a bitmap, has fewer bytes than the requested values take.
    Short {
        /// Bytes needed (saturating).
        needed: usize,
        /// The number of bytes passed.
        given: usize,
    },
    /// A dictionary index outside the dictionary.
    OutOfRange {
        /// The largest index found.
        index: u32,
        /// Entries in the dictionary.
        entries: usize,
    },
    /// Two slices that must agree in length do not.
    Mismatch,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width { width } => write!(f, "a width of {width} is not possible here"),
            Self::Short { needed, given } => write!(f, "{needed} bytes are needed, {given} were given"),
            Self::OutOfRange { index, entries } => {
                write!(f, "dictionary index {index} in a dictionary of {entries} entries")
            }
            Self::Mismatch => f.write_str("lengths that must agree differ"),
        }
    }
}

impl core::error::Error for Error {}

/// `Short` unless `given` bytes hold `bits` bits.
#[inline]
pub(crate) fn need_bits(bits: Option<usize>, given: usize) -> Result<(), Error> {
    match bits.map(|bits| bits.div_ceil(8)) {
        Some(needed) if needed <= given => Ok(()),
        Some(needed) => Err(Error::Short { needed, given }),
        None => Err(Error::Short { needed: usize::MAX, given }),
    }
}
