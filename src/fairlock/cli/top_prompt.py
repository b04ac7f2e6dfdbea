"""A question in the last line of a full screen."""

from collections.abc import Callable


class Prompt:
    """A question in the last line. `done` gets the answer; Esc ends it without one. `about` explains the question."""

    def __init__(
        self,
        question: str,
        done: Callable[[str], None],
        changed: Callable[[str], None] | None = None,
        about: str = "",
    ) -> None:
        self.question = question
        self.about = about
        self.text = ""
        self._done = done
        self._changed = changed

    def press(self, key: str) -> bool:
        """Return True if it goes on."""
        if key == "enter":
            self._done(self.text)
            return False
        if key == "escape":
            if self._changed is not None:
                self._changed("")
            return False
        if key == "backspace":
            self.text = self.text[:-1]
        elif key == "clear":
            self.text = ""
        elif len(key) == 1:
            self.text += key
        if self._changed is not None:
            self._changed(self.text)
        return True
