//! Which of a destination's calls may come next.

use marquetry_base::{Error, Result};

/// How far a destination is: calls in another order are `Misuse`, and after an error it stays failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Stage {
    /// Nothing was done.
    New,
    /// Rows may come.
    Begun,
    /// All rows are written, and nothing is visible yet.
    Finished,
    /// What was written is visible.
    Committed,
    /// An error ended it.
    Failed(Error),
}

impl Stage {
    /// Fails unless it is at this stage.
    pub(crate) fn expect(&self, stage: &Stage) -> Result<()> {
        match self {
            Stage::Failed(error) => Err(error.clone()),
            other if other == stage => Ok(()),
            other => Err(Error::misuse(format!(
                "a call for a destination that is {stage:?}, and this is {other:?}"
            ))),
        }
    }

    /// Goes on to a stage, or stays failed.
    pub(crate) fn then<T>(&mut self, next: Stage, done: Result<T>) -> Result<T> {
        *self = match &done {
            Ok(_) => next,
            Err(error) => Stage::Failed(error.clone()),
        };
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_come_in_their_order() {
        let mut stage = Stage::New;
        assert!(stage.expect(&Stage::Finished).is_err());
        stage.then(Stage::Begun, Ok(())).unwrap();
        assert!(stage.expect(&Stage::Begun).is_ok() && stage.expect(&Stage::New).is_err());
        let full = Error::io("full");
        stage.then(Stage::Begun, Err::<(), _>(full.clone())).unwrap_err();
        assert_eq!(stage.expect(&Stage::Begun), Err(full));
    }
}
