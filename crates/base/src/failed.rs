//! Failure is sticky.

use crate::{Error, Result};

/// Whether a machine has failed, and why. A machine that failed stays failed: it returns the same error again.
///
/// ```
/// use marquetry_base::{Error, Failed, Result};
///
/// #[derive(Default)]
/// struct Countdown {
///     left: u32,
///     failed: Failed,
/// }
///
/// impl Countdown {
///     fn advance(&mut self) -> Result<u32> {
///         self.left = self.left.checked_sub(1).ok_or_else(|| Error::misuse("nothing is left"))?;
///         Ok(self.left)
///     }
///
///     pub fn step(&mut self) -> Result<u32> {
///         Failed::run(self, |countdown| &mut countdown.failed, Countdown::advance)
///     }
/// }
///
/// let mut countdown = Countdown { left: 1, ..Countdown::default() };
/// assert_eq!(countdown.step(), Ok(0));
/// let error = countdown.step().unwrap_err();
/// countdown.left = 5;
/// assert_eq!(countdown.step(), Err(error));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Failed(Option<Error>);

impl Failed {
    /// Runs a step of `machine`, unless that failed before, and keeps its error. `of` is where the machine has its `Failed`.
    ///
    /// # Errors
    ///
    /// The step's error; or the earlier one, and then the step is not run.
    #[inline]
    pub fn run<M, T>(
        machine: &mut M,
        of: impl Fn(&mut M) -> &mut Failed,
        step: impl FnOnce(&mut M) -> Result<T>,
    ) -> Result<T> {
        of(machine).check()?;
        step(machine).map_err(|error| of(machine).set(error))
    }

    /// Checks that the machine has not failed.
    ///
    /// # Errors
    ///
    /// The machine's error, if it has.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Fails the machine, as a host's report or a wrong call does. Returns the machine's error from now on, which is the earlier one if
    /// it had failed.
    #[cold]
    pub fn set(&mut self, error: Error) -> Error {
        self.0.get_or_insert(error).clone()
    }

    /// Fails a machine that is being [released](crate::Release): it cannot be used any more.
    pub fn set_released(&mut self) {
        if self.0.is_none() {
            self.0 = Some(Error::misuse("a step of a machine that was released"));
        }
    }

    /// True once the machine has failed.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Machine {
        steps: u32,
        failed: Failed,
    }

    impl Machine {
        fn step(&mut self, answer: Result<u32>) -> Result<u32> {
            let step = |machine: &mut Machine| {
                machine.steps += 1;
                answer
            };
            Failed::run(self, |machine| &mut machine.failed, step)
        }
    }

    #[test]
    fn the_first_error_stays_and_no_step_is_run_after_it() {
        let (mut machine, error) = (Machine::default(), Error::corrupt("bad level").at_offset(7));
        assert_eq!(machine.step(Ok(3)), Ok(3));
        assert!(!machine.failed.is_set() && machine.failed.check().is_ok());
        assert_eq!(machine.step(Err(error.clone())), Err(error.clone()));
        assert_eq!(machine.step(Ok(4)), Err(error.clone()));
        assert_eq!(machine.step(Err(Error::misuse("again"))), Err(error.clone()));
        assert_eq!(machine.failed.check(), Err(error));
        assert_eq!(machine.steps, 2);
    }

    #[test]
    fn what_the_host_reports_fails_the_machine_unless_it_had_failed() {
        let (mut machine, gone) = (Machine::default(), Error::io("gone"));
        assert_eq!(machine.failed.set(gone.clone()), gone);
        assert_eq!(machine.failed.set(Error::io("gone again")), gone);
        assert_eq!(machine.step(Ok(1)), Err(gone));
        assert_eq!(machine.steps, 0);
    }

    #[test]
    fn is_small() {
        assert_eq!(size_of::<Failed>(), size_of::<usize>());
    }
}
