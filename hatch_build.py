"""The addresses of the project, and README.md as a package index shows it: alone, without docs/ beside it.

The address is the one that this checkout was cloned from, if that is a public one: so a fork names itself, and no
address is invented. A source distribution keeps it in its PKG-INFO, from which a wheel takes it. In a checkout the
links of README.md lead to files. On an index they lead to the same files at the address; without an address they become
the names of the files, which the source distribution contains, and pictures are left out. Rejected alternatives: a
fixed address (the project has none yet, and a link that leads nowhere is worse than none), and a README without links
(its readers have a checkout). hatchling runs this when it builds.
"""

import re
import subprocess
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"(?m)^!\[([^\]]*)\]\(([^)]+)\)\n\n")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(((?![a-z]+:|#)[^)\s#]+)([^)\s]*)\)")
ADDRESS = re.compile(r"(?:https:/{2}|git@|ssh:/{2}git@)([\w.-]+\.[a-z]{2,})[:/]([\w./-]+?)(?:\.git)?/?")


def public_address(remote: str) -> str | None:
    """Return the https address of a remote repository, or None: a folder, or a host that only exists in examples."""
    found = ADDRESS.fullmatch(remote.strip())
    if found is None or found[1].endswith((".example", ".local", ".test", ".invalid")):
        return None
    return f"https://{found[1]}/{found[2]}"


def find_address(root: Path) -> str | None:
    """Return the address of this checkout, or of the one that this source distribution was made from."""
    if (root / "PKG-INFO").exists():
        known = HeaderParser().parsestr((root / "PKG-INFO").read_text(encoding="utf-8")).get_all("Project-URL", [])
        return next((url.removeprefix("Source, ") for url in known if url.startswith("Source, ")), None)
    try:
        asked = subprocess.run(["git", "-C", str(root), "config", "--local", "remote.origin.url"], text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:  # no git
        return None
    return public_address(asked.stdout)


def for_index(readme: str, address: str | None) -> str:
    """Return the README with links that work without the files beside it."""
    if address is None:
        return LINK.sub(r"\1 (`\2`)", PICTURE.sub("", readme))
    pictures = PICTURE.sub(rf"![\1]({address}/raw/HEAD/\2)\n\n", readme)
    return LINK.sub(rf"[\1]({address}/blob/HEAD/\2\3)", pictures)


class IndexHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        address = find_address(Path(self.root))
        text = for_index((Path(self.root) / "README.md").read_text(encoding="utf-8"), address)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {} if address is None else {
            "Source": address,
            "Documentation": f"{address}/blob/HEAD/docs/index.md",
            "Changelog": f"{address}/blob/HEAD/CHANGELOG.md",
        }
