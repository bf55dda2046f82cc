//! A predicate in postfix form, and what is known of its tests in a row group.

use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use crate::prune::{Operation, Predicate, Test, Verdict, compile};

/// A predicate in postfix form, and how its operations hang together.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) operations: Vec<Operation>,
    /// From left to right.
    pub(super) tests: Vec<Test>,
    /// The leaves that are tested, ascending.
    pub(super) leaves: Vec<usize>,
    /// Of each operation, those whose results it takes, if it takes any, and the one that takes its own.
    parts: Vec<[usize; 2]>,
    parents: Vec<Option<usize>>,
    /// Of each test, its operation.
    of_tests: Vec<usize>,
}

impl Program {
    pub(super) fn of(predicate: &Predicate) -> Result<Program> {
        let mut program = Program { leaves: predicate.leaves(), ..Program::default() };
        let tests = &mut program.tests;
        compile(predicate, &mut program.operations, &mut |test| {
            tests.push(test.clone());
            Ok(tests.len() - 1)
        })?;
        program.of_tests.resize(program.tests.len(), 0);
        let mut stack = Vec::new();
        for (number, operation) in program.operations.iter().enumerate() {
            let mut parts = [number; 2];
            match operation {
                Operation::Test(test) => program.of_tests[*test] = number,
                Operation::All(_) => {}
                Operation::And | Operation::Or => {
                    let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else {
                        return Err(Error::internal("an operation without two parts"));
                    };
                    parts = [left, right];
                    parts.iter().for_each(|part| program.parents[*part] = Some(number));
                }
            }
            program.parts.push(parts);
            program.parents.push(None);
            stack.push(number);
        }
        Ok(program)
    }

    /// What an operation's result is, by those of its parts.
    fn result(&self, number: usize, verdicts: &[Verdict], tests: &[Verdict]) -> Verdict {
        let [left, right] = self.parts[number];
        match self.operations[number] {
            Operation::Test(test) => tests.get(test).copied().unwrap_or(Verdict::Some),
            Operation::All(true) => Verdict::All,
            Operation::All(false) => Verdict::None,
            Operation::And => verdicts[left].and(verdicts[right]),
            Operation::Or => verdicts[left].or(verdicts[right]),
        }
    }
}

/// What is known of the tests in a row group, and what follows for each operation.
///
/// What is learned of a test is passed on as far as it changes anything. As long as verdicts change one way, thousands of tests that
/// are learned one by one take no longer than to go through all operations once.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    tests: Vec<Verdict>,
    operations: Vec<Verdict>,
}

impl Known {
    /// By what is known of each test.
    #[cfg(test)]
    fn of(program: &Program, tests: Vec<Verdict>) -> Known {
        let mut known = Known::default();
        let mut tests = tests.into_iter();
        known.begin(program, |_| tests.next().unwrap_or(Verdict::Some));
        known
    }

    /// Begins anew, by what is known of each test, which are asked for in order.
    pub(super) fn begin(&mut self, program: &Program, mut of_test: impl FnMut(usize) -> Verdict) {
        let Known { tests, operations } = self;
        tests.clear();
        tests.extend((0..program.tests.len()).map(&mut of_test));
        operations.clear();
        for number in 0..program.operations.len() {
            let verdict = program.result(number, operations, tests);
            operations.push(verdict);
        }
    }

    /// Of the whole predicate.
    pub(super) fn verdict(&self) -> Verdict {
        self.operations.last().copied().unwrap_or(Verdict::Some)
    }

    /// Of each test.
    pub(super) fn tests(&self) -> &[Verdict] {
        &self.tests
    }

    /// Learns about a test. Returns how many operations it looked at.
    pub(super) fn learn(&mut self, program: &Program, test: usize, verdict: Verdict) -> usize {
        self.tests[test] = verdict;
        let (mut next, mut looked) = (Some(program.of_tests[test]), 0);
        while let Some(number) = next {
            looked += 1;
            let verdict = program.result(number, &self.operations, &self.tests);
            if core::mem::replace(&mut self.operations[number], verdict) == verdict {
                break;
            }
            next = program.parents[number];
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prune::Ranges;

    fn test(leaf: usize) -> Predicate {
        Predicate::Test(Test::accepting(leaf, Ranges::of_keys(0, 0)))
    }

    #[test]
    fn what_is_learned_one_by_one_is_what_all_of_it_says() {
        let predicate = Predicate::And(alloc::vec![
            Predicate::Or(alloc::vec![test(0), test(1), Predicate::Or(Vec::new())]),
            Predicate::And(Vec::new()),
            Predicate::Or(alloc::vec![test(2), Predicate::And(alloc::vec![test(3), test(4)])]),
        ]);
        let program = Program::of(&predicate).unwrap();
        let verdict = |number: usize| [Verdict::None, Verdict::Some, Verdict::All][number % 3];
        for case in 0..3_usize.pow(5) {
            let tests: Vec<Verdict> = (0..5).map(|test| verdict(case / 3_usize.pow(test))).collect();
            let mut known = Known::of(&program, alloc::vec![Verdict::Some; 5]);
            for (test, verdict) in tests.iter().enumerate() {
                known.learn(&program, test, *verdict);
            }
            assert_eq!(known.verdict(), Known::of(&program, tests.clone()).verdict());
            assert_eq!(known.verdict(), predicate.judge(&mut |test| tests[test.leaf]));
        }
    }

    #[test]
    fn thousands_of_alternatives_are_learned_in_one_go() {
        let count = 5_000;
        let program = Program::of(&Predicate::Or((0..count).map(test).collect())).unwrap();
        let mut known = Known::of(&program, alloc::vec![Verdict::Some; count]);
        let looked: usize = (0..count).map(|test| known.learn(&program, test, Verdict::None)).sum();
        assert_eq!(known.verdict(), Verdict::None);
        assert!(looked < 4 * count, "{looked}");
    }
}
