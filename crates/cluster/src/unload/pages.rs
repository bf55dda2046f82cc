//! The pages of a piece, asked for one ahead of what is taken.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use marquetry_tables::Cancel;
use scylla::response::PagingState;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::requests::{Page, Requests, Rows};
use crate::error::{Error, Result};
use crate::runtime::Runtime;

/// Pages that may be asked for, or wait to be taken, besides the one in hand.
const PAGES_AHEAD: usize = 1;
/// How long to wait for a page before checking whether the work was cancelled.
const LOOK_UP_AFTER: Duration = Duration::from_millis(50);

/// The pages of a piece. Dropping it ends the requests.
#[derive(Debug)]
pub(super) struct Pages {
    pages: Receiver<Result<Option<Page>>>,
    /// A permit for each page that may be asked for.
    room: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl Pages {
    /// Begins to ask for them.
    pub(super) fn start(runtime: &Runtime, requests: Arc<Requests>, rows: Rows) -> Result<Pages> {
        let (found, pages) = mpsc::channel();
        let room = Arc::new(Semaphore::new(PAGES_AHEAD));
        let task = runtime.spawn(ask_for_all(requests, rows, Arc::clone(&room), found))?;
        Ok(Pages { pages, room, task })
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    ///
    /// Those of [`Requests::page`]; [`Error::Cancelled`].
    pub(super) fn next(&mut self, cancel: &Cancel) -> Result<Option<Page>> {
        loop {
            match self.pages.recv_timeout(LOOK_UP_AFTER) {
                Ok(page) => {
                    self.room.add_permits(1);
                    return page;
                }
                Err(RecvTimeoutError::Timeout) if cancel.is_set() => return Err(Error::Cancelled),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal("a task panicked")),
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn ask_for_all(
    requests: Arc<Requests>,
    rows: Rows,
    room: Arc<Semaphore>,
    found: Sender<Result<Option<Page>>>,
) {
    let mut state = PagingState::start();
    loop {
        let Ok(permit) = room.acquire().await else { return };
        permit.forget();
        let asked = requests.page(&rows, state).await;
        let (page, next) = match asked {
            Ok((page, next)) => (Ok(Some(page)), next),
            Err(error) => (Err(error), None),
        };
        let is_failed = page.is_err();
        // Nobody takes it any more: then nobody wants the next one.
        if found.send(page).is_err() || is_failed {
            return;
        }
        match next {
            Some(next) => state = next,
            None => {
                let _ = found.send(Ok(None));
                return;
            }
        }
    }
}
