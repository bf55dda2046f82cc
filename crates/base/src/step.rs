//! What a machine is and what it answers.

use core::ops::Range;

use bytes::Bytes;

use crate::{Budget, Demand, Error, Object, Result};

/// The answer of one [`Machine::step`].
#[derive(Debug, Clone, PartialEq)]
pub enum Step<T> {
    /// A product: a batch, a record event, a footer.
    Ready(T),
    /// The machine cannot go on before the required ranges of this demand are supplied (or failed).
    Need(Demand),
    /// Writers: append these bytes to this object.
    Append(Object, Bytes),
    /// The budget is spent; call again.
    Yield,
    /// Nothing more will come.
    Done,
}

impl<T> Step<T> {
    /// Converts the product, if there is one.
    pub fn map<U>(self, turn: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Step::Ready(product) => Step::Ready(turn(product)),
            Step::Need(demand) => Step::Need(demand),
            Step::Append(object, bytes) => Step::Append(object, bytes),
            Step::Yield => Step::Yield,
            Step::Done => Step::Done,
        }
    }
}

/// A resumable reader or writer of a format. See the crate's documentation for the contract.
///
/// To drop a machine in the middle of its work, or after an error, takes as long as freeing what it holds; so does
/// dropping a product. Where that may be long, and the host must not stall, it calls [`release`](crate::Release::release) until
/// that returns true, and drops it then. A machine that returned [`Step::Done`] holds little.
pub trait Machine {
    /// What [`Step::Ready`] carries.
    type Product;

    /// Works until there is an answer or the budget is spent, whichever comes first.
    ///
    /// # Errors
    ///
    /// Any [`Error`]; the machine then stays failed and returns the same error again.
    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Self::Product>>;

    /// Hands over bytes of an object, the whole of a demanded range or any piece of it, in any order.
    ///
    /// The bytes are kept by reference, not copied. Bytes that the machine never asked for may be dropped.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) when the range and the bytes differ in length, the object is
    /// not the machine's, or the range lies beyond the object's end.
    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()>;

    /// Answers [`Want::Length`](crate::Want::Length) with the object's length in bytes.
    ///
    /// A method of its own, because a length is not a range.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for an object that is not the machine's, or a second, different length.
    fn supply_length(&mut self, object: Object, length: u64) -> Result<()>;

    /// Reports that a range the machine asked for cannot be read. The machine fails with `reason`.
    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error);
}

impl<M: Machine + ?Sized> Machine for &mut M {
    type Product = M::Product;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Self::Product>> {
        (**self).step(budget)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        (**self).supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        (**self).supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        (**self).fail(object, range, reason);
    }
}
