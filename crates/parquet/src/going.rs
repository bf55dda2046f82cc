//! What the parts of a machine answer.

/// How far a part of a machine has come. Where nothing from outside can be missing, a part answers with an `Option` or a `bool` instead:
/// `None`, or false, if the budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going<T = (), N = ()> {
    /// It has what it was asked for.
    Done(T),
    /// Bytes are missing: these, unless the part is asked for them.
    Need(N),
    /// The budget is spent.
    Yield,
}

impl<T, N> Going<T, N> {
    /// Converts what is there.
    pub(crate) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Going<U, N> {
        match self {
            Going::Done(there) => Going::Done(turn(there)),
            Going::Need(missing) => Going::Need(missing),
            Going::Yield => Going::Yield,
        }
    }
}

/// What is done; what is not is returned, as `?` does with errors.
macro_rules! done {
    ($going:expr) => {
        match $going {
            $crate::going::Going::Done(there) => there,
            $crate::going::Going::Need(missing) => return Ok($crate::going::Going::Need(missing)),
            $crate::going::Going::Yield => return Ok($crate::going::Going::Yield),
        }
    };
}
pub(crate) use done;
