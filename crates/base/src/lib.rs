//! The contract that every Marquetry machine keeps.
//!
//! A *machine* reads or writes a format. It is a struct with state: no I/O, no clock, no threads, no async. Its host
//! calls [`Machine::step`] with a [`Budget`] and does what the returned [`Step`] asks for:
//!
//! 1. `step` until it returns something other than [`Step::Yield`];
//! 2. on [`Step::Need`], fetch the ranges of the [`Demand`] and hand each to [`Machine::supply`] (or report the
//!    trouble with [`Machine::fail`]), in any order and in pieces of any size, then `step` again;
//! 3. on [`Step::Ready`], use the product, then `step` again;
//! 4. on [`Step::Append`] (writers), add the bytes to the object's end;
//! 5. on [`Step::Done`], stop.
//!
//! What a machine promises in return:
//!
//! * **No step works longer than its budget allows**, but for one slice of a named, bounded size; and every step
//!   makes progress, even when the budget is spent before it starts.
//! * **Needing input is a status, never an error.** Asking again gives the same answer.
//! * **Failure is sticky**: after an error, every later `step` returns the same error.
//! * **Nothing that a file merely claims is allocated**: buffers grow as bytes arrive, and [`Limits`] bound them.
//! * **To give memory back is work, too.** What a machine held and is done with, it lets go of in slices that are charged; and before it
//!   says [`Step::Done`], all that is large. What its host drops is the host's work: a machine that failed or is not wanted any more, the
//!   bytes it supplied (in pieces of no more than it likes to free at once), a product; those that may be large offer to be taken apart, as
//!   [`Segmented`] lists do. One allocation that is large by need, a single value or a codec's window, is had and freed at once.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod budget;
mod buffer;
pub mod calendar;
pub mod cast;
mod codec;
mod demand;
mod error;
mod input;
mod limits;
mod segmented;
mod step;

pub use budget::{Budget, Price};
pub use buffer::{Bitmap, Buffer, Pool};
pub use bytes::Bytes;
pub use codec::{Codec, Codecs, Compressor, Decompressor, Levels, Progress, Status};
pub use demand::{Demand, Object, Priority, Want};
pub use error::{Detail, Error, ErrorKind, Place, Result};
pub use input::Input;
pub use limits::{Limit, Limits};
pub use segmented::{Segmented, SegmentedIter};
pub use step::{Machine, Step};
