"""An order in which any beginning of a list is spread over the whole of it: budgets end where they like."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T]) -> list[T]:
    """The items by the radical inverse of their turn (van der Corput's sequence in base 2): 0, 1/2, 1/4, 3/4, 1/8 …"""
    bits = max(0, len(items) - 1).bit_length()
    turns = (int(format(turn, f"0{bits}b")[::-1], 2) if bits else 0 for turn in range(2**bits))
    places = dict.fromkeys(turn * len(items) // 2**bits for turn in turns)
    return [items[place] for place in places] if items else []


def in_turns(groups: Mapping[str, Sequence[T]]) -> Iterator[T]:
    """One of each group in turn, each group spread, until all are through."""
    queues = [iter(spread(items)) for items in groups.values()]
    while queues:
        going = []
        for queue in queues:
            for item in queue:
                yield item
                going.append(queue)
                break
        queues = going
