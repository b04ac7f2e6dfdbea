"""`fairlock mcp`: a server of the Model Context Protocol, started by a coding agent, over standard input and output."""

from __future__ import annotations

import os

from fairlock.errors import ConfigError

from .parse_arguments import Arguments


def mcp(args: Arguments) -> int:
    try:
        from fairlock.integrations.mcp_server import find_checkout, serve
    except ModuleNotFoundError as missing:
        lacks = (missing.name or "").partition(".")[0]
        raise ConfigError(f"`fairlock mcp` needs {lacks}: pip install 'fairlock[mcp]'.") from None
    folder = find_checkout(args.operands[0] if args.operands else ".")
    if not os.path.isdir(folder):
        raise ConfigError(f"{folder!r} is not a folder.")
    url = args["url"]
    if url is None and not os.environ.get("FAIRLOCK_URL") and not os.environ.get("FAIRLOCK_URL_FILE"):
        inside_git = f"{folder}/.git/fairlock.db"
        # In a worktree .git is a file; a worktree is a checkout of its own.
        url = f"sqlite:///{inside_git if os.path.isdir(f'{folder}/.git') else f'{folder}/.fairlock.db'}"
    serve(url, folder, owner=args["owner"], lease=args["lease"], namespace=args["namespace"], scope=args["scope"])
    return 0
