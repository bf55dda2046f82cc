//! The work of columns that a writer has handed out.

use alloc::collections::VecDeque;

use marquetry_base::Error;
use marquetry_base::cast::u64_of;

use super::column::Slack;
use super::work::Task;

/// What is handed out, and what is not back.
#[derive(Debug)]
pub(super) struct Sharing {
    /// Tasks that may be begun before another one is done.
    pub(super) ahead: usize,
    /// Those that some column has not done, and the number of the first.
    pub(super) tasks: VecDeque<Open>,
    pub(super) first: u64,
    /// Columns that are here and have work, and those that are elsewhere. The next one that is looked at.
    pub(super) ready: usize,
    pub(super) away: usize,
    pub(super) scan: usize,
    /// Nothing can be done before work is returned.
    pub(super) is_waiting: bool,
    /// The first error, by its task and its column.
    pub(super) failed: Option<(u64, usize, Error)>,
    /// The sum over all columns.
    pub(super) slack: Slack,
    /// What was taken to be the most once what is handed out is done: a check of [`Slack`].
    pub(super) expected: Option<Slack>,
    /// The batch is measured up to this column.
    pub(super) measured: (usize, Slack),
    /// The end of chunks is handed out.
    pub(super) is_ending: bool,
}

/// A task that some column has not done.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) task: Task,
    /// Columns that have not done it.
    pub(super) left: usize,
    /// By how much it makes columns grow, at most.
    pub(super) growth: Slack,
}

impl Sharing {
    pub(super) fn new(ahead: usize) -> Sharing {
        Sharing {
            ahead,
            tasks: VecDeque::new(),
            first: 0,
            ready: 0,
            away: 0,
            scan: 0,
            is_waiting: false,
            failed: None,
            slack: Slack::default(),
            expected: None,
            measured: (0, Slack::default()),
            is_ending: false,
        }
    }

    pub(super) fn are_all_here(&self) -> bool {
        self.away == 0 && self.ready == 0
    }

    pub(super) fn end(&self) -> u64 {
        self.first + u64_of(self.tasks.len())
    }

    pub(super) fn hand_out(&mut self, task: Task, growth: Slack, columns: usize) {
        self.tasks.push_back(Open { task, left: columns, growth });
        self.ready = columns - self.away;
    }
}
