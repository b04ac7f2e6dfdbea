"""Code for frameworks, one module each, only where a page of documentation is not enough.

    django          the client of settings.py, and a transaction inside a lock
    starlette       423 Locked with Retry-After, for Starlette and FastAPI
    dogpile         the mutex of a dogpile.cache region
    tooz_driver     tooz.coordination on the stores of fairlock; tooz_groups: its groups
    mcp_server      the tools of `fairlock mcp`, for coding agents that share a checkout
    pytest_plugin   `once_per_run`: set up once over all workers of pytest-xdist

Each imports its framework, and this package imports none of them. docs/integrations.md lists what needs no code.

Rejected alternatives: packages of their own (one more release for twenty lines each), and an extra for each framework:
a program that uses Django has it.
"""
