//! Worlds, executables and launches.
