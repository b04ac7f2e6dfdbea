"""Items and lines as text: what is written is read again, and nothing else is taken for it."""

import pytest

from holdfast.doorman import EMPTY, wire
from holdfast.pool import NOBODY, Item, Line, Worker
from holdfast.pool.wire import decode_item, decode_line, encode_item, encode_line
from holdfast.sealed import seal

WORKER = Worker("t", 5, "ear", "ö\t\"'", "note", 3, 1, 2, 9)
LINE = Line(3, 17, (WORKER, WORKER._replace(ticket="u")), (WORKER._replace(key="named\n"),))
ITEM = Item("k", 12, 7, "t", 5, "owner", "a note", '{"n": [1, 2.5, null, "ö"]}')


def test_a_line_is_read_as_it_was_written() -> None:
    assert decode_line(encode_line(LINE)) == LINE
    assert decode_line(encode_line(NOBODY)) == NOBODY
    assert decode_line(None) == NOBODY


def test_an_item_is_read_as_it_was_written() -> None:
    assert decode_item("k", 12, "owner", encode_item(ITEM)) == ITEM


NO_LINE = [
    "", "{}", "[]", "null", "[1]", seal('["line3",1,2,[],[]]'), seal('["line2",1]'), '["line2",1,2,[],[]]',
    encode_item(ITEM),
]  # fmt: skip


@pytest.mark.parametrize("text", NO_LINE)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_line(text)


def test_a_line_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line"):
        decode_line(seal('["line2",1,2,[[1,2]],[]]'))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '["item9",1,"t",5,"n","b"]', encode_line(LINE)])
def test_what_is_no_item_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_item("k", 1, "", text)


def test_neither_is_taken_for_a_doormans_record_nor_that_for_them() -> None:
    for text in (encode_line(LINE), encode_line(NOBODY), encode_item(ITEM)):
        with pytest.raises(ValueError):
            wire.decode(text)
    with pytest.raises(ValueError):
        decode_line(wire.encode(EMPTY))
