//! Tasks: the InCore scopes of an entry.

use super::build::build;
use super::pointer::Text;
use super::program::pld_program_t;

/// Begins a task of the open entry: the only place of loads, stores, transfers, signals and tile arithmetic. The name
/// appears in reports. `pld_task_end` ends it.
#[unsafe(no_mangle)]
pub extern "C" fn pld_at_begin(p: Option<&mut pld_program_t>, name: Text) {
    build(p, |c| {
        let name = c.name(name);
        c.builder.at_begin(name, Default::default());
        Some(())
    })
}

/// Ends the task.
#[unsafe(no_mangle)]
pub extern "C" fn pld_task_end(p: Option<&mut pld_program_t>) {
    build(p, |c| {
        c.builder.task_end();
        Some(())
    })
}
