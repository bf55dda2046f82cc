//! Which of a destination's calls may come next.

use marquetry_base::{Error, Failed, Result};

/// Guards the calls of a [`Destination`](crate::Destination): in another order they are `Misuse`, and after an error
/// each returns that error again.
///
/// ```
/// use marquetry_base::{Error, Result};
/// use marquetry_tables::{Guard, Stage};
///
/// let mut guard = Guard::default();
/// guard.expect(Stage::New)?;
/// guard.then(Stage::Begun, Ok(()))?;
///
/// guard.expect(Stage::Begun)?;
/// let full: Result<()> = Err(Error::io("the disk is full"));
/// assert!(guard.then(Stage::Begun, full.clone()).is_err());
/// assert_eq!(guard.expect(Stage::Begun), full);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Guard {
    stage: Stage,
    failed: Failed,
}

/// How far a destination is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stage {
    /// Nothing was done.
    #[default]
    New,
    /// Rows may come.
    Begun,
    /// All rows are written, and nothing is visible yet.
    Finished,
    /// What was written is visible.
    Committed,
}

impl Guard {
    /// Checks, before a call is carried out, that the destination is at this stage.
    ///
    /// # Errors
    ///
    /// The error that the destination failed with, if it has; otherwise `Misuse` if it is at another stage.
    pub fn expect(&self, stage: Stage) -> Result<()> {
        self.failed.check()?;
        if self.stage == stage {
            return Ok(());
        }
        Err(Error::misuse(format!(
            "a call for a destination that is {stage:?}, and this is {:?}",
            self.stage
        )))
    }

    /// Records, after a call, that the destination is now at this stage, or that it has failed. Returns what was done.
    ///
    /// # Errors
    ///
    /// That of `done`.
    pub fn then<T>(&mut self, next: Stage, done: Result<T>) -> Result<T> {
        let done = done.map_err(|error| self.failed.set(error))?;
        self.stage = next;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_their_order() {
        let mut guard = Guard::default();
        assert!(guard.expect(Stage::Finished).is_err());
        guard.then(Stage::Begun, Ok(())).unwrap();
        assert!(guard.expect(Stage::Begun).is_ok() && guard.expect(Stage::New).is_err());
        let full = Error::io("full");
        guard.then(Stage::Begun, Err::<(), _>(full.clone())).unwrap_err();
        assert_eq!(guard.expect(Stage::Begun), Err(full.clone()));
        assert_eq!(guard.expect(Stage::Finished), Err(full));
    }
}
