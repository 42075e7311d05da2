//! Gives windows of one name the same place in every program of a pool.

use std::collections::HashMap;

use super::plan_windows::{ALIGN, Layout, Place};
use crate::error::{Error, ErrorKind, Result};
use crate::ir::Program;

/// The places of windows in memory that several programs share.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Bytes of all windows that it can take.
    pub capacity: usize,
    places: HashMap<String, Place>,
    /// Bytes of all windows that it has, padding included.
    bytes: usize,
}

impl Pool {
    /// A pool without windows.
    pub fn new(name: &str, capacity: usize) -> Self {
        Self { name: name.into(), capacity, places: HashMap::new(), bytes: 0 }
    }

    /// Moves the windows of `program` to their places in the pool: those that it has by name, or new ones behind them.
    pub fn place(&mut self, program: &Program, layout: &mut Layout) -> Result<()> {
        let mut bytes = self.bytes;
        for (buffer, data) in &program.buffers {
            let place = &mut layout.buffers[buffer];
            match self.places.get(&data.name) {
                Some(known) if known.bytes == place.bytes => *place = *known,
                Some(known) => {
                    let message = format!(
                        "window {} of '{}' has {} bytes, but {} bytes in pool '{}'",
                        data.name, program.name, place.bytes, known.bytes, self.name
                    );
                    return Err(Error::new(ErrorKind::Mismatch, message));
                }
                None => {
                    place.offset = bytes;
                    // The sizes of one program fit the address space together; with those of others they may not.
                    bytes = bytes.saturating_add(place.bytes).checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX);
                }
            }
        }
        if bytes > self.capacity {
            let message = format!(
                "pool '{}' has {} bytes, but with the windows of '{}' it needs {bytes}",
                self.name, self.capacity, program.name
            );
            return Err(Error::new(ErrorKind::NoSpace, message));
        }
        let new = program.buffers.iter().map(|(buffer, data)| (data.name.clone(), layout.buffers[buffer]));
        self.places.extend(new);
        self.bytes = bytes;
        layout.bytes = bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::passes::plan_windows::plan_windows;

    /// A program with these windows, as name and number of `i32`s.
    fn program(name: &str, windows: &[(&str, usize)]) -> Program {
        let lines: Vec<String> =
            windows.iter().map(|(name, count)| format!("  {name} = alloc_window [{count}] i32\n")).collect();
        parse(&format!("program {name}\nhost () {{\n{}}}\n", lines.concat()), "test.pld").unwrap()
    }

    fn place(pool: &mut Pool, program: &Program) -> Result<Vec<usize>> {
        let mut layout = plan_windows(program, 2).unwrap();
        pool.place(program, &mut layout)?;
        Ok(program.buffers.keys().map(|buffer| layout.buffers[buffer].offset).collect())
    }

    #[test]
    fn the_same_name_is_the_same_place() {
        let mut pool = Pool::new("cache", 320);
        let first = program("first", &[("sig", 2), ("kv", 17)]);
        assert_eq!(place(&mut pool, &first), Ok(vec![0, 64]));
        let second = program("second", &[("own", 1), ("kv", 17), ("sig", 2)]);
        assert_eq!(place(&mut pool, &second), Ok(vec![192, 64, 0]));
        assert_eq!(place(&mut pool, &first), Ok(vec![0, 64]));

        let other = program("third", &[("x", 1), ("kv", 16)]);
        let error = place(&mut pool, &other).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Mismatch);
        assert_eq!(error.message, "window kv of 'third' has 64 bytes, but 68 bytes in pool 'cache'");
        let larger = program("fourth", &[("x", 16), ("y", 1)]);
        let error = place(&mut pool, &larger).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoSpace);
        let right = "pool 'cache' has 320 bytes, but with the windows of 'fourth' it needs 384";
        assert_eq!(error.message, right);
        assert_eq!(place(&mut pool, &program("fifth", &[("y", 1)])), Ok(vec![256]), "a refused program takes no place");
    }
}
