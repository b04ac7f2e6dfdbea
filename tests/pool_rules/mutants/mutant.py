"""What a mutant is: the rules with a few of their words replaced by others, and who must notice.

`noticed_by` is the name of an example that fails, or "LAW in WORLD": the first law that is broken in that world.
"""

from typing import NamedTuple


class M(NamedTuple):
    mistake: str
    words: str
    others: str
    noticed_by: str
