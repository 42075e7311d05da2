//! The rules of a program.
