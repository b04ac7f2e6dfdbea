"""Items and queues as text: what is written is read again, and nothing else is taken for it."""

import pytest

from fairlock.rules.checksum import seal
from fairlock.rules.locks import EMPTY, codec
from fairlock.rules.pools import NOBODY, ItemState, Worker, WorkerQueue
from fairlock.rules.pools.codec import decode_item, decode_queue, encode_item, encode_queue

WORKER = Worker("t", 5, "listener", "ö\t\"'", "note", 3, 1, 2, 9)
LINE = WorkerQueue(3, 17, (WORKER, WORKER._replace(ticket="u")), (WORKER._replace(key="named\n"),))
ITEM = ItemState("k", 12, 7, "t", 5, "owner", "a note", '{"n": [1, 2.5, null, "ö"]}')


def test_a_line_is_read_as_it_was_written() -> None:
    assert decode_queue(encode_queue(LINE)) == LINE
    assert decode_queue(encode_queue(NOBODY)) == NOBODY
    assert decode_queue(None) == NOBODY


def test_an_item_is_read_as_it_was_written() -> None:
    assert decode_item("k", 12, "owner", encode_item(ITEM)) == ITEM


NO_LINE = [
    "", "{}", "[]", "null", "[1]", seal('["line3",1,2,[],[]]'), seal('["line2",1]'), '["line2",1,2,[],[]]',
    encode_item(ITEM),
]  # fmt: skip


@pytest.mark.parametrize("text", NO_LINE)
def test_what_is_no_line_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_queue(text)


def test_a_line_of_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not a queue of workers"):
        decode_queue(seal('["line2",1,2,[[1,2]],[]]'))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '["item9",1,"t",5,"n","b"]', encode_queue(LINE)])
def test_what_is_no_item_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_item("k", 1, "", text)


def test_neither_is_taken_for_a_doormans_record_nor_that_for_them() -> None:
    for text in (encode_queue(LINE), encode_queue(NOBODY), encode_item(ITEM)):
        with pytest.raises(ValueError):
            codec.decode(text)
    with pytest.raises(ValueError):
        decode_queue(codec.encode(EMPTY))
