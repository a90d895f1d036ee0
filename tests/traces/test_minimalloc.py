"""MiniMalloc's CSV: what it asks of the places of buffers is read, kept and written again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.trace.formats.__main__ import convert
from harness.trace.formats.builder import FormatError
from harness.trace.formats.history import Event, History

Buffer = tuple[int, int, int, int, "int | None", "int | None", tuple[tuple[int, int, int, int], ...]]


def imported(place: Path, text: str | bytes) -> tuple[list[list[object]], list[Event]]:
    """The placement and the events of a text."""
    source, trace = place / "buffers.csv", place / "buffers.hrtrace"
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    convert(source, trace, "headroom")
    with trace.open("rb") as stream:
        history = History(stream)
        return history.header["placement"], list(history.events())


def there_and_back(place: Path, text: str) -> str:
    imported(place, text)
    convert(place / "buffers.hrtrace", place / "again.csv", "minimalloc")
    return (place / "again.csv").read_text()


def refusal(place: Path, text: str) -> str:
    with pytest.raises(FormatError) as error:
        imported(place, text)
    return str(error.value)


def test_every_column_is_kept_and_written_again(tmp_path: Path) -> None:
    text = (
        "id,lower,upper,size,alignment,hint,gaps,offset\n"
        "a,0,9,512,1,-1,2-4 6-8@0:256,\n"
        "b,3,12,1024,64,128,,4096\n"
    )
    assert there_and_back(tmp_path, text) == text


def test_columns_nobody_needs_are_not_written(tmp_path: Path) -> None:
    assert there_and_back(tmp_path, "size,upper,lower,id,gaps\n8,4,0,a,\n") == "id,lower,upper,size\na,0,4,8\n"


def test_an_inclusive_end_makes_the_ends_of_gaps_inclusive(tmp_path: Path) -> None:
    text = "buffer_id,start,end,size,gaps\nx,0,9,4,2-2 5-6@1:3\n"
    assert there_and_back(tmp_path, text) == "id,lower,upper,size,gaps\nx,0,10,4,2-3 5-7@1:3\n"


def test_a_gap_counts_as_far_as_it_lies_in_the_life(tmp_path: Path) -> None:
    placement, _ = imported(tmp_path, "id,lower,upper,size,gaps\nx,5,10,15,9-11 12-14@2:13 0-6\n")
    assert placement == [[1, 1, None, None, [[5, 6, 0, 0], [9, 10, 0, 0]]]]


@pytest.mark.parametrize("header", ["id,lower,upper,size", "buffer,start,upper,size", " buffer_id , begin , upper , size "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_names_of_columns_and_ends_of_lines_do_not_matter(tmp_path: Path, header: str, end: str, mark: bytes) -> None:
    lines = [header, "a,0,4,8", "", " b , 2 , 6 , 16 "]
    _, events = imported(tmp_path, mark + end.join(lines).encode())
    assert [(event.kind, event.op, event.time_ns, event.requested) for event in events] == [
        ("alloc", "a", 0, 8), ("alloc", "b", 2, 16), ("free", "", 4, 8), ("free", "", 6, 16),
    ]  # fmt: skip


def test_what_never_lives_is_left_out(tmp_path: Path) -> None:
    assert there_and_back(tmp_path, "id,lower,upper,size\na,3,3,8\nb,0,4,8\n") == "id,lower,upper,size\nb,0,4,8\n"
    assert there_and_back(tmp_path, "id,lower,end,size\na,3,2,8\nb,0,3,8\n") == "id,lower,upper,size\nb,0,4,8\n"


def test_a_buffer_of_no_bytes_takes_none(tmp_path: Path) -> None:
    assert there_and_back(tmp_path, "id,lower,upper,size\na,0,3,0\nb,0,4,8\n") == "id,lower,upper,size\nb,0,4,8\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id,lower,upper,size,colour\na,0,4,8,red\n", ["line 1", "colour", "alignment", "gaps"]),
        ("id,lower,start,upper,size\na,0,0,4,8\n", ["line 1", "start", "twice"]),
        ("id,lower,upper,end,size\na,0,4,3,8\n", ["line 1", "end", "twice"]),
        ("id,lower,upper\na,0,4\n", ["line 1", "size"]),
        ("id,lower,upper,size\na,0,4\n", ["line 2", "3 fields", "4"]),
        ("id,lower,upper,size\na,0,4,8,9\n", ["line 2", "5 fields", "4"]),
        ("id,lower,upper,size\na,0,4,8\n\nb,0,4,x\n", ["line 4", "size 'x'"]),
        ("id,lower,upper,size\na,0,4,1_0\n", ["line 2", "1_0"]),
        ("id,lower,upper,size\na,0,4,-8\n", ["line 2", "negative"]),
        ("id,lower,upper,size\na,5,4,8\n", ["line 2", "a", "before it begins"]),
        ("id,lower,upper,size\na,0,4,8\na,3,5,8\n", ["line 3", "a", "live"]),
        ("id,lower,upper,size,alignment\na,0,4,8,0\n", ["line 2", "alignment 0"]),
        ("id,lower,upper,size,offset\na,0,4,8,-1\n", ["line 2", "offset", "negative"]),
        ("id,lower,upper,size,gaps\na,0,4,8,1-2-3\n", ["line 2", "2-3"]),
        ("id,lower,upper,size,gaps\na,0,4,8,1:2\n", ["line 2", "1:2", "7-9@0:512"]),
        ("id,lower,upper,size,gaps\na,0,4,8,2-1\n", ["line 2", "2-1", "before it begins"]),
        ("id,lower,upper,size,gaps\na,0,4,8,1-2@0:9\n", ["line 2", "1-2@0:9", "does not have"]),
        ("id,lower,upper,size,gaps\na,0,9,8,1-4 3-5\n", ["line 2", "overlap"]),
        ("id,lower,upper,size\n", ["without a single allocation"]),
        ("", ["is empty"]),
    ],
)
def test_what_is_not_sound_is_refused_with_its_place(tmp_path: Path, text: str, words: list[str]) -> None:
    said = refusal(tmp_path, text)
    assert all(word in said for word in words), said


def random_buffer(chance: random.Random) -> Buffer:
    lower = chance.randrange(100)
    upper = lower + chance.randrange(1, 50)
    size = chance.randrange(1, 10**6)
    gaps, begin = [], lower
    while chance.random() < 0.4 and begin + 1 < upper:
        begin = chance.randrange(begin, upper - 1)
        end = chance.randrange(begin + 1, upper)
        low = chance.randrange(size)
        gaps.append((begin, end, low, chance.randrange(low + 1, size + 1)) if chance.random() < 0.5 else (begin, end, 0, 0))
        begin = end
    offset = chance.randrange(10**9) if chance.random() < 0.3 else None
    hint = chance.randrange(10**9) if chance.random() < 0.3 else None
    return lower, upper, size, chance.choice([1, 1, 2, 256]), offset, hint, tuple(gaps)


def test_random_problems_come_back_as_they_were(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(30):
        buffers = {f"b{number}": random_buffer(chance) for number in range(20)}
        lines = ["hint,id,gaps,upper,offset,size,lower,alignment"]
        for name, (lower, upper, size, alignment, offset, hint, gaps) in buffers.items():
            shown = " ".join(f"{gap[0]}-{gap[1]}" + (f"@{gap[2]}:{gap[3]}" if gap[3] else "") for gap in gaps)
            lines.append(f"{'' if hint is None else hint},{name},{shown},{upper},"
                         f"{'' if offset is None else offset},{size},{lower},{alignment}")  # fmt: skip
        again = there_and_back(tmp_path, "\n".join(lines))
        placement, events = imported(tmp_path, again)
        begun = {event.id: event for event in events if event.kind == "alloc"}
        ended = {event.id: event.time_ns for event in events if event.kind == "free"}
        asked = {number: rest for number, *rest in placement}
        found = {}
        for number, event in begun.items():
            alignment, offset, hint, gaps = asked.get(number, [1, None, None, []])
            found[event.op] = (event.time_ns, ended[number], event.requested, alignment, offset, hint,
                               tuple(tuple(gap) for gap in gaps))  # fmt: skip
        assert found == buffers
