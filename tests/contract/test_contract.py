"""Every behaviour of the kit, over every store and both faces of this house."""

from fairlock.testing.suite import *  # noqa: F403
