"""What the name of a device says: `cuda:1` is the second device of the kind `cuda`."""


def kind_of(name: str) -> str:
    """The name without an index.

    >>> kind_of("cuda:1"), kind_of("cpu")
    ('cuda', 'cpu')
    """
    return name.partition(":")[0]


def index_of(name: str) -> int:
    """The index in the name of a device; 0 where it has none.

    >>> index_of("cuda:1"), index_of("cuda")
    (1, 0)
    """
    index = name.partition(":")[2]
    return int(index) if index.isdecimal() else 0
