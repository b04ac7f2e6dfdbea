"""The flows: waiting in line, keeping a lease, leaving. Written once, as coroutines without a colour."""
