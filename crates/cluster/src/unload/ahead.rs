//! Pieces that are asked for before they are opened, so that nodes are busy whatever their number.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::Pages;
use crate::error::Result;

/// The pieces after those that were opened, of which the first page is on its way, or here.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    started: Mutex<Started>,
}

#[derive(Debug, Default)]
struct Started {
    pages: BTreeMap<usize, Pages>,
    /// The first piece that nobody has asked for yet.
    next: usize,
}

impl Ahead {
    /// The pages of a piece, of so many; asks for those after it, up to `ahead` of them.
    ///
    /// # Errors
    ///
    /// Those of `start`, for this piece.
    pub(super) fn take(
        &self,
        piece: usize,
        pieces: usize,
        ahead: usize,
        start: impl Fn(usize) -> Result<Pages>,
    ) -> Result<Pages> {
        let mut started = self.started();
        if piece == 0 {
            // From the start again: what was asked for by those who read it before, and left, is of no use.
            *started = Started::default();
        }
        let pages = match started.pages.remove(&piece) {
            Some(pages) => pages,
            None => start(piece)?,
        };
        let first = started.next.max(piece + 1);
        for next in first..(piece + 1 + ahead).min(pieces) {
            // An error is one of that piece, and found when it is opened.
            let Ok(pages) = start(next) else { break };
            started.pages.insert(next, pages);
        }
        started.next = first.max((piece + 1 + ahead).min(pieces));
        Ok(pages)
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
