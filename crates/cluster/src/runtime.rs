//! The runtime that the driver lives on: threads of its own, for which others wait.

use std::future::Future;
use std::sync::mpsc;

use crate::error::{Error, Result};

/// A runtime. It may be used and dropped on any thread, also on one that runs tasks of another runtime; that one then waits too.
#[derive(Debug)]
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    pub(crate) fn start() -> Result<Runtime> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .thread_name("marquetry-cluster")
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        Ok(Runtime(Some(runtime)))
    }

    /// Runs a future on the runtime's threads, and waits for it on this one.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let Some(runtime) = &self.0 else {
            return Err(Error::Internal("the runtime has ended"));
        };
        let (done, result) = mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Whoever waits is there.
            let _ = done.send(future.await);
        });
        result.recv().map_err(|_| Error::Internal("a task panicked"))
    }

    /// Runs a future on the runtime's threads.
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Result<tokio::task::JoinHandle<()>> {
        let runtime = self.0.as_ref().ok_or(Error::Internal("the runtime has ended"))?;
        Ok(runtime.spawn(future))
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // To wait for its threads would panic on a thread that runs tasks; nothing that matters runs on them any more.
            runtime.shutdown_background();
        }
    }
}
