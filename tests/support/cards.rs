//! Worlds of simulated cards.

use std::path::Path;

use pld::runtime::{CardOptions, WorldOptions};

#[path = "toolkit.rs"]
mod toolkit;

/// What the environment of a process with simulated cards says.
pub fn variables() -> Vec<(&'static str, String)> {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let text = |path: &Path| path.to_str().expect("a path of the project").to_owned();
    vec![("ASCEND_HOME_PATH", text(&toolkit::toolkit())), ("PLD_KERNEL_CACHE", text(&cache))]
}

/// Options of a world whose ranks are cards, device `r` for rank `r`.
pub fn on_cards() -> WorldOptions {
    WorldOptions { cards: Some(CardOptions::default()), ..WorldOptions::default() }
}
