//! The contract that every Marquetry machine fulfils.
//!
//! A *machine* reads or writes a format. It is a struct with state: no I/O, no clock, no threads, no async. Its host
//! calls [`Machine::step`] with a [`Budget`] and does what the returned [`Step`] asks for:
//!
//! 1. `step` until it returns something other than [`Step::Yield`];
//! 2. on [`Step::Need`], fetch the ranges of the [`Demand`] and hand each to [`Machine::supply`] (or report a failure
//!    with [`Machine::fail`]), in any order and in pieces of any size, then `step` again;
//! 3. on [`Step::Ready`], use the product, then `step` again;
//! 4. on [`Step::Append`] (writers), add the bytes to the object's end;
//! 5. on [`Step::Done`], stop.
//!
//! What a machine promises in return:
//!
//! * **No step works longer than its budget allows**, except by one slice of a named, bounded size; and every step
//!   makes progress, even when its budget has no units or the host wants to stop at once. (A budget is for one step:
//!   what a step does in slices that are not cut, it leaves to the next one's.)
//! * **Needing input is a status, never an error.** Asking again gives the same answer.
//! * **Failure is sticky** ([`Failed`]): after an error, every later `step` returns the same error.
//! * **Nothing that a file merely claims is allocated**: buffers grow as bytes arrive, and [`Limits`] bound them.
//! * **Freeing memory is work, too.** A machine releases what it no longer needs in slices that are charged, and
//!   everything large before it returns [`Step::Done`]. What the host drops is the host's work: a product, a machine
//!   that failed or is no longer wanted, the bytes the host supplied (in pieces as large as it likes to free at once).
//!   Products and readers implement [`Release`], so the host can release them in slices, too. A codec's window is
//!   freed in one piece.
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
mod failed;
mod faults;
mod frame;
mod input;
mod limit;
mod limits;
pub mod parse;
pub mod print;
mod release;
mod segmented;
mod step;
pub mod twos_complement;

pub use budget::{Budget, Price};
pub use buffer::{Bitmap, Buffer, Pool};
pub use bytes::Bytes;
pub use codec::{Codec, Codecs, Compressor, Decompressor, Levels, Progress, Status};
pub use demand::{Demand, Object, Priority, Want};
pub use error::{Detail, Error, ErrorKind, Place, Result};
pub use failed::Failed;
pub use faults::Faults;
pub use frame::{Field, Fields, Frame};
pub use input::{Input, check_supply};
pub use limit::Limit;
pub use limits::Limits;
pub use release::{RELEASE_PRICE, Release, release_all};
pub use segmented::{Segmented, SegmentedIter};
pub use step::{Machine, Step};
