"""Locks that span threads, processes and machines."""
