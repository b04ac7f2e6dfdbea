"""docs/api.md names everything that is public, and nothing that is not."""

import holdfast


def test_connecting_once_leaves_connect_a_function() -> None:
    """A submodule of that name would take its place when it is first imported inside the function."""
    holdfast.connect("memory://").close()
    holdfast.connect("memory://").close()
