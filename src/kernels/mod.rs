//! Vector work of generated code: copies, tile arithmetic, casts, reductions, atomic adds.
