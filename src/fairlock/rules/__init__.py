"""The rules of locks and of pools, as pure functions: no clock, no I/O, no waiting."""
