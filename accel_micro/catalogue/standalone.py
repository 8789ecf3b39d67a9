"""The source of an op's definition with all that it needs of its modules, such that torch alone runs it."""

import ast
import builtins
import importlib
import inspect
import re
import symtable
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import resolve_name
from types import FunctionType, ModuleType
from typing import Any, Final

from accel_micro.definition import Op
from accel_micro.models import registry

STAND_INS: Final = ("Inputs", "Timed")
"""Names of `accel_micro.measure.inputs` that a definition may use: a script brings its own."""

_INPUTS: Final = "accel_micro.measure.inputs"
_MODELS: Final = "accel_micro.models"
"""Plain torch, so what a definition takes from there comes along."""

_WITH_TORCH: Final = frozenset({"torch", "torch_xla"})
_FOR_TOOLS: Final = re.compile(r"\s*# (noqa|type: ignore|fmt: ).*$", re.M)


class NotStandalone(Exception):
    """An op cannot be run without accel_micro, or without what is not torch's; the message says why."""


@dataclass(frozen=True)
class Standalone:
    """A definition, its helper functions and constants, as text.

    Attributes:
        name: of the definition. imports: lines. source: the rest, in an order that works.
        words: all names, attributes and keywords in it, so also which parts of `Inputs` it may use.
        attributes: the attributes alone.
        defined: the names that it gives to things, imports included.
    """

    name: str
    imports: tuple[str, ...]
    source: str
    words: frozenset[str]
    attributes: frozenset[str]
    defined: frozenset[str]


def standalone(op: Op, network: str | None = None) -> Standalone:
    """The source that an op's definition needs, without the decorator that makes it a benchmark.

    Functions, classes and constants are followed from name to name, into other modules of the suite too, and into those
    of reference networks; imports of torch and of Python's own modules stay imports. What a module does to a constant
    later comes along.

    Args:
        network: which of the reference networks the definition builds, where it builds one.

    Raises:
        NotStandalone: it needs something else of accel_micro, another package, or a value that has no source.
    """
    collecting = _Collecting(op, network)
    collecting.function(op.definition)
    source = _FOR_TOOLS.sub("", _joined(collecting.texts()))
    return Standalone(
        name=op.definition.__name__,
        imports=tuple(collecting.imports),
        source=source,
        words=frozenset(_words(source)),
        attributes=frozenset(n.attr for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Attribute)),
        defined=frozenset([*collecting.defined, *collecting.imports.values()]),
    )


def _joined(texts: Iterable[str]) -> str:
    """Constants line by line, functions and classes two empty lines apart."""
    joined, before = "", False
    for text in texts:
        block = text.startswith(("def ", "class ", "@"))
        joined += ("\n\n\n" if block or before else "\n") + text
        before = block
    return joined.strip("\n")


@dataclass(frozen=True)
class _Statement:
    """A statement of a module. binds, uses: the names that it gives to things, and those that it needs."""

    text: str
    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]

    @classmethod
    def of(cls, text: str, node: ast.stmt) -> "_Statement":
        table = symtable.symtable(text, "<definition>", "exec")
        bound = (s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported())
        return cls(text, node, frozenset(bound), frozenset(_needed(table)))


def _needed(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that are looked up in the module."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or table.get_type() == "module"):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _needed(child)


@cache
def _statements(text: str) -> tuple[_Statement, ...]:
    """The statements of a module, in order."""
    lines = text.splitlines()
    found = []
    for node in ast.parse(text).body:
        decorators = getattr(node, "decorator_list", ())
        first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
        segment = ast.get_source_segment(text, node) or ""
        found.append(
            _Statement.of("\n".join(lines[first - 1 : node.end_lineno]) if decorators else segment, node)
        )
    return tuple(found)


class _Collecting:
    """What was found so far.

    Attributes:
        imports: lines, each with the name that it binds. defined: names, each with the module that defines it.
    """

    def __init__(self, op: Op, network: str | None = None) -> None:
        self.op = op.name
        self._network = network
        self.imports: dict[str, str] = {}
        self.defined: dict[str, str] = {}
        self._root = op.definition.__module__.partition(".")[0]
        self._of_modules: dict[str, dict[int, str]] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._of_functions: list[str] = []

    def texts(self) -> Iterator[str]:
        """Those of modules in the order in which they stand there, needed modules first; then functions."""
        for module in self._in_order():
            found = self._of_modules.get(module, {})
            yield from (found[index] for index in sorted(found))
        yield from self._of_functions

    def _in_order(self) -> list[str]:
        ordered: dict[str, None] = {}
        entered = set()

        def enter(module: str) -> None:
            if module not in entered:
                entered.add(module)
                for needed in self._needs.get(module, {}):
                    enter(needed)
                ordered[module] = None

        for module in self._of_modules:
            enter(module)
        return list(ordered)

    def function(self, function: Callable[..., Any]) -> None:
        """A function that need not stand in a module: its text, and what it needs."""
        name = function.__name__
        if not isinstance(function, FunctionType) or not name.isidentifier():
            raise self._not(f"{name} is no function that was defined with def")
        try:
            text = textwrap.dedent(inspect.getsource(function)).rstrip()
        except OSError:
            raise self._not(f"the source of {name} cannot be read") from None
        node = ast.parse(text).body[0]
        assert isinstance(node, ast.FunctionDef)
        statement = _Statement.of(self._undecorated(text, node, function.__module__), node)
        self._define(name, function.__module__)
        closed = inspect.getclosurevars(function).nonlocals
        self._follow(statement, function.__module__, closed)
        self._of_functions.append(statement.text)

    def _undecorated(self, text: str, node: ast.FunctionDef, module: str) -> str:
        """The text without decorators of accel_micro, which make a benchmark of it."""
        lines = text.splitlines()
        kept = list(lines[node.lineno - 1 :])
        for decorator in reversed(node.decorator_list):
            names = {each.id for each in ast.walk(decorator) if isinstance(each, ast.Name)}
            if not any(self._is_ours(name, module) for name in names):
                kept = [*lines[decorator.lineno - 1 : decorator.end_lineno], *kept]
        return "\n".join(kept)

    def _is_ours(self, name: str, module: str) -> bool:
        value = getattr(sys.modules.get(module), name, None)
        of = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None) or ""
        return of.partition(".")[0] == "accel_micro"

    def _follow(self, statement: _Statement, module: str, closed: Mapping[str, Any] | None = None) -> None:
        for node in ast.walk(statement.node):
            for imported in _imported(node, module):
                self._allowed(imported)
        for name in sorted(statement.uses):
            if closed and name in closed:
                self._closed(name, closed[name], module)
            else:
                self._name(name, module)

    def _closed(self, name: str, value: Any, module: str) -> None:
        """A variable of the function around."""
        if isinstance(value, FunctionType) and value.__name__ == name:
            if name not in self.defined:
                self.function(value)
            return
        if isinstance(value, ModuleType):
            self._import(f"import {value.__name__} as {name}", name, value.__name__)
            return
        try:
            same = bool(ast.literal_eval(repr(value)) == value)
        except (SyntaxError, ValueError):
            same = False
        if not same:
            raise self._not(f"{name}, a variable around it, has a value that cannot be written down")
        self._define(name, f"{module}, around the function")
        self._of_functions.append(f"{name} = {value!r}")

    def _name(self, name: str, module: str) -> None:
        """What a name stands for in a module."""
        try:
            statements = _statements(inspect.getsource(importlib.import_module(module)))
        except (ImportError, OSError, TypeError):  # defined at a prompt, or by a loader of its own
            raise self._not(f"the source of {module} cannot be read") from None
        binding = [index for index, each in enumerate(statements) if name in each.binds]
        if not binding:
            if not hasattr(builtins, name):
                raise self._not(f"{module} does not say what {name} is")
            return
        touching = [i for i, each in enumerate(statements) if not each.binds and name in each.uses]
        for index in (*binding, *touching):
            statement = statements[index]
            if isinstance(statement.node, (ast.Import, ast.ImportFrom)):
                self._of_import(name, statement.node, module)
            elif index not in self._of_modules.get(module, {}):
                for bound in statement.binds:
                    self._define(bound, module)
                self._of_modules.setdefault(module, {})[index] = statement.text
                self._follow(statement, module)

    def _of_import(self, name: str, node: ast.Import | ast.ImportFrom, module: str) -> None:
        for alias in node.names:
            bound = alias.asname or (
                alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0]
            )
            if bound != name:
                continue
            renamed = f" as {alias.asname}" if alias.asname else ""
            if isinstance(node, ast.Import):
                self._import(f"import {alias.name}{renamed}", name, alias.name)
                continue
            source = _source_of(node, module)
            if source == _INPUTS and alias.name in STAND_INS and not renamed:
                continue
            if (source, alias.name) == (_MODELS, "build") and not renamed:
                self._build(module)
                continue
            if source.partition(".")[0] == self._root or f"{source}.".startswith(f"{_MODELS}."):
                if renamed or isinstance(
                    getattr(importlib.import_module(source), alias.name, None), ModuleType
                ):
                    raise self._not(f"it imports {source}.{alias.name} as a module or by another name")
                self._needs.setdefault(module, {})[source] = None
                self._name(alias.name, source)
                continue
            self._import(f"from {source} import {alias.name}{renamed}", name, f"{source}.{alias.name}")

    def _build(self, module: str) -> None:
        """A function in place of `accel_micro.models.build`, which finds a network by its name: it knows one."""
        if self._network is None:
            raise self._not("it builds a network, and the case does not say which")
        self._needs.setdefault(module, {})[registry.__name__] = None
        if registry.__name__ in self._of_modules:
            return
        self._define("build", registry.__name__)
        self._of_modules[registry.__name__] = {
            0: f'def build(name, device="cpu", dtype="float32", seed={registry.SEED:_}):\n'
            '    """The network with the same weights on every device."""\n'
            f"    return with_weights(name, {self._network}, device, dtype, seed)"
        }
        for needed, name in (
            (f"{_MODELS}.model", "with_weights"),
            (registry.module_of(self._network), self._network),
        ):
            self._needs.setdefault(registry.__name__, {})[needed] = None
            self._name(name, needed)

    def _import(self, line: str, name: str, what: str) -> None:
        self._allowed(what)
        others = [each for each, bound in self.imports.items() if bound == name and each != line]
        if name in self.defined or (others and not line.startswith(f"import {name}.")):
            raise self._not(f"{name} has two meanings in its modules")
        self.imports[line] = name

    def _allowed(self, imported: str) -> None:
        root = imported.partition(".")[0]
        if root == "accel_micro":
            raise self._not(f"it needs {imported}, a part of accel_micro")
        if root not in _WITH_TORCH and root not in sys.stdlib_module_names:
            raise self._not(f"it needs {imported}, which does not come with torch")

    def _define(self, name: str, module: str) -> None:
        if self.defined.setdefault(name, module) != module or name in self.imports.values():
            raise self._not(f"{name} has two meanings in its modules")

    def _not(self, reason: str) -> NotStandalone:
        return NotStandalone(f"{self.op} cannot be made a script of its own: {reason}")


def _imported(node: ast.AST, module: str) -> Iterator[str]:
    """Full names of what an import inside a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        source = _source_of(node, module)
        yield from (f"{source}.{alias.name}" for alias in node.names)


def _source_of(node: ast.ImportFrom, module: str) -> str:
    relative = "." * node.level + (node.module or "")
    return resolve_name(relative, module.rpartition(".")[0]) if node.level else relative


def _words(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
