"""The dtypes that cases come in: their names as torch has them, short ones for tables, bytes an element."""

from typing import Final

FLOATS: Final = ("float32", "bfloat16", "float16", "float64")
"""What most ops exist in."""

NARROW: Final = ("int8", "float8_e4m3fn")
"""What only products of low precision exist in."""

DTYPES: Final = (*FLOATS, *NARROW)

ITEMSIZE: Final = {
    "float32": 4,
    "bfloat16": 2,
    "float16": 2,
    "float64": 8,
    "int8": 1,
    "float8_e4m3fn": 1,
}
"""Bytes an element."""

SHORT: Final = {
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "float64": "fp64",
    "int8": "int8",
    "float8_e4m3fn": "fp8",
}
"""Names for narrow columns, and accepted on the command line."""
