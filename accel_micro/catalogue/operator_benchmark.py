"""What torch's own operator benchmark times: read from a checkout of PyTorch, kept as a list.

    python -m accel_micro.catalogue.operator_benchmark CHECKOUT COMMIT > benchmarks/coverage/operator_benchmark.toml

Its files are parsed and never run: importing them needs a build of PyTorch with its tests, and would register each
benchmark. They name what they time in two ways: lists of names and callables (`op_list`), and classes handed to
`generate_pt_test`, which name themselves (`set_module_name`) or go by the name of the class.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from accel_micro.catalogue import toml

FOLDER: Final = "benchmarks/operator_benchmark/pt"


@dataclass(frozen=True)
class Benchmarked:
    """One op of the operator benchmark.

    Attributes:
        file: without `.py`. call: what is called, as the file writes it; empty where a class calls it.
        commit: of PyTorch, at which the file was read.
    """

    file: str
    name: str
    call: str
    commit: str

    @property
    def key(self) -> str:
        """What no other has, such as `unary_test.abs`."""
        return f"{self.file}.{self.name}"


def read_checkout(checkout: Path, commit: str) -> list[Benchmarked]:
    """The ops of every `*_test.py` of the operator benchmark, in order of files and lines.

    Raises:
        FileNotFoundError: the folder has no operator benchmark.
        SyntaxError: a file is no Python of this interpreter's version.
    """
    files = sorted((checkout / FOLDER).glob("*_test.py"))
    if not files:
        raise FileNotFoundError(f"{checkout} has no {FOLDER}/*_test.py: it is no checkout of PyTorch")
    return [
        Benchmarked(file.stem, name, call, commit)
        for file in files
        for name, call in read_source(file.read_text(encoding="utf-8"))
    ]


def read_source(source: str) -> list[tuple[str, str]]:
    """Names and calls in the text of one file; of those that stand there twice, the first.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(source)
    found: dict[str, str] = {}
    for name, call in (*_listed(tree), *((name, "") for name in _classes(tree))):
        found.setdefault(name, call)
    return list(found.items())


def _listed(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for call in _calls(tree, "op_list"):
        (attrs,) = (word.value for word in call.keywords if word.arg == "attrs")
        for entry in attrs.elts if isinstance(attrs, ast.List | ast.Tuple) else ():
            if isinstance(entry, ast.List | ast.Tuple):
                name, function = entry.elts
                yield str(ast.literal_eval(name)), ast.unparse(function)


def _classes(tree: ast.Module) -> Iterator[str]:
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for call in _calls(tree, "generate_pt_test", "generate_pt_gradient_test"):
        handed = call.args[1]
        if isinstance(handed, ast.Name) and handed.id in classes:
            given = [_name(set_name.args[0]) for set_name in _calls(classes[handed.id], "set_module_name")]
            yield from [name for name in given if name] or [handed.id]


def _name(given: ast.expr) -> str:
    """The text, or its fixed beginning up to a parenthesis; empty where it is known to a run only."""
    if isinstance(given, ast.JoinedStr) and given.values:
        given = given.values[0]
    return str(given.value).partition("(")[0].strip() if isinstance(given, ast.Constant) else ""


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    """Calls of methods of these names, from top to bottom."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names
    ]
    return iter(sorted(calls, key=lambda call: (call.lineno, call.col_offset)))


def write(listed: Iterable[Benchmarked]) -> str:
    """The list as TOML, which `read` reads."""
    lines = [
        f"# What torch's operator benchmark ({FOLDER} in pytorch/pytorch) times: names and calls.",
        "# Each file as of its commit, by the rules of accel_micro/catalogue/operator_benchmark.py.",
    ]
    file = None
    for each in listed:
        if each.file != file:
            file = each.file
            lines += ["", f"[{toml.quoted(file)}]", f"commit = {toml.quoted(each.commit)}"]
            lines.append(f"[{toml.quoted(file)}.ops]")
        lines.append(f"{toml.quoted(each.name)} = {toml.quoted(each.call)}")
    return "\n".join(lines) + "\n"


def read(path: Path) -> list[Benchmarked]:
    """The list that a file holds.

    Raises:
        OSError, ValueError: it cannot be read, or is no such list.
    """
    try:
        return [
            Benchmarked(str(file), str(name), str(call), str(facts["commit"]))
            for file, facts in toml.read(path).items()
            for name, call in facts["ops"].items()
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is no list of the operator benchmark: {error!r}") from None


if __name__ == "__main__":
    sys.stdout.write(write(read_checkout(Path(sys.argv[1]), sys.argv[2])))
