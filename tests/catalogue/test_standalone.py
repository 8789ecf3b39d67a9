"""The source that a definition needs, from modules of a suite."""

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from accel_micro.catalogue.standalone import NotStandalone, Standalone, standalone
from accel_micro.definition import Op
from accel_micro.models import build
from accel_micro.suite import op

HEAD = "import torch\n\nfrom accel_micro.suite import op\n"
SHAPE = '@op(quick=["n=4"])\n'

Suite = Callable[..., Op]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """The op `made` of a module `family` that has this text, beside other modules."""
    package = tmp_path / "somebodys"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    def load(text: str, **others: str) -> Op:
        for name, source in {"family": HEAD + text, **others}.items():
            (package / f"{name}.py").write_text(source)
        made: Op = importlib.import_module("somebodys.family").made.op
        return made

    yield load
    for name in [name for name in sys.modules if name.partition(".")[0] == "somebodys"]:
        del sys.modules[name]


def run(found: Standalone) -> Any:
    """What the definition returns for n=4, in a namespace that has its source alone."""
    namespace: dict[str, Any] = {}
    exec("\n".join([*found.imports, found.source]), namespace)
    return namespace[found.name](lambda *shape: torch.ones(shape), n=4)()


def test_helpers_constants_and_classes_come_along_and_nothing_else(suite: Suite) -> None:
    found = standalone(
        suite(
            "import contextlib\nimport functools\nimport math\nfrom math import tau as circle\n"
            "UNUSED = math.pi\nHALF = circle / math.tau / 2\nTABLE = {}\nTABLE['two'] = 2.0\n"
            "LEFT, RIGHT = 1.0, 3.0\nif HALF == 0.5:\n    WHOLE = 1.0  # noqa: F841\nelse:\n    WHOLE = 0.0\n"
            "def _unused(x):\n    return UNUSED\n"
            "class Layer(torch.nn.Module):\n    scale = RIGHT\n"
            "    def forward(self, x):\n        return x * self.scale\n"
            "def _times(factor, x):\n    return factor * x\n"
            "twice = functools.partial(_times, TABLE['two'])\n"
            "@contextlib.contextmanager\ndef _around():\n    yield HALF\n"
            + SHAPE
            + "def made(t, n):\n    x = t(n)\n    with _around() as half:\n"
            "        return lambda: twice(Layer()(x)) * half * LEFT * WHOLE\n"
        )
    )
    assert torch.equal(run(found), 3.0 * torch.ones(4))
    assert "UNUSED" not in found.source and "_unused" not in found.source and "@op" not in found.source
    assert "noqa" not in found.source
    assert set(found.imports) == {
        "import contextlib", "import functools", "import math", "import torch", "from math import tau as circle",
    }  # fmt: skip
    assert {"made", "_times", "twice", "TABLE", "LEFT", "RIGHT", "circle"} <= found.defined
    assert {"scale", "partial"} <= found.words


def test_other_modules_of_the_suite_come_along(suite: Suite) -> None:
    found = standalone(
        suite(
            "from . import inner\nfrom somebodys.common import scaled\n"
            + SHAPE
            + "def made(t, n):\n    x = t(n)\n    return lambda: scaled(x)\n",
            common="from somebodys.inner import FACTOR\ndef scaled(x):\n    return FACTOR * x\n",
            inner="import math\nFACTOR = math.sqrt(4.0)\n",
        )
    )
    assert torch.equal(run(found), 2.0 * torch.ones(4))
    assert "somebodys" not in found.source


def test_modules_that_others_need_stand_before_them(suite: Suite) -> None:
    found = standalone(
        suite(
            "from somebodys.outer import TWICE\n"
            + SHAPE
            + "def made(t, n):\n    x = t(n)\n    return lambda: TWICE * x\n",
            outer="from somebodys.inner import FACTOR\nTWICE = 2 * FACTOR\n",
            inner="FACTOR = 2.0\n",
        )
    )
    assert torch.equal(run(found), 4.0 * torch.ones(4))


def test_a_network_comes_along(suite: Suite) -> None:
    made = suite(
        "from accel_micro.models import build\nfrom accel_micro.models.still import still\n"
        + SHAPE
        + "def made(t, n):\n    model = build('mnist')\n    batch = model.batch(n)\n"
        "    with still(model.module):\n        return lambda: model.inference_step(batch)\n"
    )
    found = standalone(made, "mnist")
    assert "accel_micro" not in found.source and "class VAE" not in found.source
    expected = build("mnist")
    assert torch.equal(run(found), expected.inference_step(expected.batch(4)))


def test_variables_around_a_definition_come_along() -> None:
    import math

    factor, names = 3.0, ("a", "b")

    def plus(x: Any) -> Any:
        return x + factor

    @op(quick=["n=4"])
    def made(t, n):  # type: ignore[no-untyped-def]
        """A definition in a function."""
        x = t(n)
        return lambda: math.floor(2.5) * plus(x) + len(names)

    found = standalone(made.op)
    assert torch.equal(run(found), 10.0 * torch.ones(4))


MADE = SHAPE + "def made(t, n):\n    return lambda: "
INSIDE = SHAPE + "def made(t, n):\n    "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"import numpy\n{MADE}numpy.ones(n)\n", "it needs numpy, which does not come with torch"),
        (f"{INSIDE}import scipy.stats\n    return lambda: scipy\n", "it needs scipy.stats, which does not"),
        (
            f"{INSIDE}from accel_micro import host\n    return lambda: host\n",
            "it needs accel_micro.host, a part",
        ),
        (f"from accel_micro import devices\n{MADE}devices\n", "it needs accel_micro.devices, a part"),
        (f"from accel_micro.models import build\n{MADE}build\n", "the case does not say which"),
        (f"{SHAPE}def other(t, n):\n    return t\n{MADE}other\n", "it needs accel_micro.suite.op, a part"),
        (f"from math import *\n{MADE}tau\n", "somebodys.family does not say what tau is"),
        (f"from somebodys import inner\n{MADE}inner\n", "inner as a module or by another name"),
        (f"from .inner import F as G\n{MADE}G\n", "F as a module or by another name"),
        (f"from .inner import g\nF = 2\n{MADE}g() + F\n", "F has two meanings"),
        ("made = op(quick=['n=4'])(lambda t, n: t)\n", "<lambda> is no function that was defined with def"),
    ],
)
def test_what_cannot_come_along_is_said(text: str, reason: str, suite: Suite) -> None:
    made = suite(text, inner="F = 1\ndef g():\n    return F\n")
    with pytest.raises(NotStandalone) as error:
        standalone(made)
    assert f"{made.name} cannot be made a script of its own: " in str(error.value)
    assert reason in str(error.value)


def test_a_value_that_cannot_be_written_down_is_said() -> None:
    lock = object()

    @op(quick=["n=4"])
    def made(t, n):  # type: ignore[no-untyped-def]
        """A definition in a function."""
        return lambda: lock

    with pytest.raises(
        NotStandalone, match="lock, a variable around it, has a value that cannot be written down"
    ):
        standalone(made.op)
