//! The window pools of a world: memory that executables share by name, as long as the world lives.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::windows::Windows;
use crate::passes::share_windows::Pool;

/// All pools. The holder of the world's turn changes them.
#[derive(Default)]
pub(super) struct Pools(Mutex<Vec<(Pool, Arc<Windows>)>>);

impl Pools {
    fn lock(&self) -> MutexGuard<'_, Vec<(Pool, Arc<Windows>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What lies where in a pool, if there is one of this name.
    pub(super) fn plan(&self, name: &str) -> Option<Pool> {
        self.lock().iter().find(|(pool, _)| pool.name == name).map(|(pool, _)| pool.clone())
    }

    /// The memory of a pool, if there is one of this name.
    pub(super) fn windows(&self, name: &str) -> Option<Arc<Windows>> {
        self.lock().iter().find(|(pool, _)| pool.name == name).map(|(_, windows)| windows.clone())
    }

    /// The memory of all pools.
    pub(super) fn all(&self) -> Vec<Arc<Windows>> {
        self.lock().iter().map(|(_, windows)| windows.clone()).collect()
    }

    /// A pool is new, or has got more windows.
    pub(super) fn keep(&self, pool: Pool, windows: &Arc<Windows>) {
        let mut pools = self.lock();
        match pools.iter_mut().find(|(known, _)| known.name == pool.name) {
            Some((known, _)) => *known = pool,
            None => pools.push((pool, windows.clone())),
        }
    }
}
