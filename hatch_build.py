"""README.md as a package index shows it: alone, without docs/ beside it.

In a checkout its links lead to the files. On an index such a link would lead nowhere, so it becomes the name of the
file, which the source distribution contains; a picture is left out. Rejected alternatives: absolute links (the project
has no address yet), and a README without links (its readers have a checkout). hatchling runs this when it builds.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"(?m)^!\[[^\]]*\]\([^)]+\)\n\n")
LINK = re.compile(r"\[([^\]]+)\]\(((?![a-z]+:|#)[^)\s#]+)[^)\s]*\)")


def for_index(readme: str) -> str:
    """Return the README with the names of files in place of links to them, and without pictures."""
    return LINK.sub(r"\1 (`\2`)", PICTURE.sub("", readme))


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = for_index((Path(self.root) / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
