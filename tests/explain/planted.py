"""Models with something planted in them, small enough for a test; named as `tests.explain.planted:plain`."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from accel_micro.models.model import Batch, Model

WIDTH = 192


class Sleepy(nn.Module):
    """Python that takes its time, and an op after it."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def forward(self, x: Tensor) -> Tensor:
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return torch.tanh(x)


class Fickle(nn.Module):
    """Calls other ops each time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x.relu() if self.calls % 2 else x.relu().tanh()


class Asking(nn.Module):
    """Asks for a number of each batch."""

    def forward(self, x: Tensor) -> Tensor:
        self.last = x.sum().item()
        return torch.tanh(x)


@torch.library.custom_op("planted::doubled", mutates_args=())
def doubled(x: Tensor, times: int, wrong: bool) -> Tensor:
    """Twice x. It works for that `times` over, and is off by a hundredth in float32 alone where it is to be wrong."""
    for _ in range(times):
        torch.exp(_WORK)
    return x * (2.02 if wrong and x.dtype == torch.float32 else 2.0)


_WORK = torch.zeros(50_000)
doubled.register_fake(lambda x, times, wrong: torch.empty_like(x))
doubled.register_autograd(lambda context, gradient: (2 * gradient, None, None))


class Doubling(nn.Module):
    """Calls an op of its own."""

    def __init__(self, times: int = 1, wrong: bool = False) -> None:
        super().__init__()
        self.times, self.wrong = times, wrong

    def forward(self, x: Tensor) -> Tensor:
        return doubled(x, self.times, self.wrong)


class Lazy(nn.Module):
    """Gets ready when it is first called, for a second and a half."""

    def __init__(self) -> None:
        super().__init__()
        self.ready = False

    def forward(self, x: Tensor) -> Tensor:
        if not self.ready:
            self.ready = True
            time.sleep(1.5)
        return torch.tanh(x)


class Growing(nn.Module):
    """Multiplies by a number that changes from step to step, which a program has as a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.tanh(torch.cat([x, x[:, : 1 + self.calls % 97]], 1)[:, : x.shape[1]])


class Broken(nn.Module):
    """Makes infinity of finite numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.zeros_like(x)


def _batch(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    return Batch(torch.randn(n, WIDTH, generator=generator).to(dtype), torch.zeros(n, WIDTH, dtype=dtype))


def _model(name: str, module: nn.Module, device: str, **optimizer: Any) -> Model:
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(1)
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=WIDTH**-0.5)
    module.to(device)
    made = torch.optim.Adam(list(module.parameters()) or [nn.Parameter(torch.zeros(1))], **optimizer)
    return Model(name, module, _batch, nn.functional.mse_loss, made, 1)


def plain(device: str) -> Model:
    """Three layers."""
    return _model("plain", nn.Sequential(_linear(), nn.Tanh(), _linear(), nn.Tanh(), _linear()), device)


def sound(device: str) -> Model:
    """An op of its own in the second layer, and no fault."""
    return _model("sound", nn.Sequential(_linear(), Doubling(), _linear(), nn.Tanh(), _linear()), device)


def slower(device: str) -> Model:
    """The same, where that op takes a hundred times as long."""
    return _model("slower", nn.Sequential(_linear(), Doubling(100), _linear(), nn.Tanh(), _linear()), device)


def wrong(device: str) -> Model:
    """The same, where that op is wrong."""
    layers = (_linear(), Doubling(wrong=True), _linear(), nn.Tanh(), _linear())
    return _model("wrong", nn.Sequential(*layers), device)


def compiled(device: str) -> Model:
    """The same without a fault, compiled in its first step."""
    model = sound(device)
    model.module.compile(backend="aot_eager")
    return model


def threaded(device: str) -> Model:
    """A layer whose ops are large enough for several threads."""
    model = _model("threaded", nn.Sequential(_linear(), Tiny(), _linear()), device)
    with torch.no_grad():
        model.module[1].weight.fill_(1.0)  # type: ignore[union-attr,operator,index]
    return model


def sleepy(device: str) -> Model:
    """The same, with Python in the second layer."""
    return _model("sleepy", nn.Sequential(_linear(), nn.Tanh(), _linear(), Sleepy(5e-3), _linear()), device)


def fickle(device: str) -> Model:
    """Its ops change from step to step."""
    return _model("fickle", nn.Sequential(_linear(), Fickle(), _linear()), device)


def broken(device: str) -> Model:
    """Its second layer divides by zero."""
    return _model("broken", nn.Sequential(_linear(), Broken(), _linear()), device)


def many(device: str) -> Model:
    """An optimizer of hundreds of tiny tensors."""
    return _model("many", Many(), device)


class Many(nn.Module):
    """A scale and a shift, two hundred times over, used all at once."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(WIDTH)) for _ in range(400)])

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.stack(list(self.parts)).sum(0)


def denormal(device: str) -> Model:
    """A layer whose weights are too small for float32 to hold in full."""
    model = _model("denormal", nn.Sequential(_linear(), Tiny(), _linear()), device)
    with torch.no_grad():
        model.module[1].weight.fill_(1e-40)  # type: ignore[union-attr,operator,index]
    return model


class Tiny(nn.Module):
    """Adds roots of weights, a hundred thousand of them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2000, WIDTH), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight.sqrt().sum(0)


def asking(device: str) -> Model:
    """Its second layer asks for a number."""
    return _model("asking", nn.Sequential(_linear(), Asking(), _linear(), nn.Tanh(), _linear()), device)


def lazy(device: str) -> Model:
    """Its first step takes a second and a half more than others."""
    return _model("lazy", nn.Sequential(_linear(), Lazy(), _linear(), nn.Tanh(), _linear()), device)


def growing(device: str) -> Model:
    """Shapes inside of it change from step to step."""
    return _model("growing", nn.Sequential(_linear(), Growing(), _linear(), nn.Tanh(), _linear()), device)


def _linear() -> nn.Linear:
    return nn.Linear(WIDTH, WIDTH)


def loader() -> Iterator[tuple[Tensor, Tensor]]:
    """Batches that take 30 ms each."""
    for _ in range(8):
        time.sleep(0.03)
        yield torch.randn(4, WIDTH), torch.zeros(4, WIDTH)


def without_fused(device: str) -> Model:
    """Its optimizer has no fused kernel."""
    return replace(plain(device), optimizer=torch.optim.Rprop(plain(device).module.parameters()))


def no_model(device: str) -> str:
    """Not a model."""
    return "plain"


class Digits(Dataset[tuple[Tensor, Tensor]]):
    """Examples of which reading or transforming takes some milliseconds."""

    def __init__(self, reading: float = 0.0, transforming: float = 0.0) -> None:
        self.reading, self.transforming = reading, transforming
        self.transform = self.changed

    def __len__(self) -> int:
        return 40

    def __getitem__(self, place: int) -> tuple[Tensor, Tensor]:
        _rest(self.reading)
        return self.transform(torch.ones(WIDTH) * place), torch.zeros(WIDTH)

    def changed(self, x: Tensor) -> Tensor:
        """Takes its time."""
        _rest(self.transforming)
        return x - 1.0


def _rest(seconds: float) -> None:
    if seconds:
        time.sleep(seconds)


def slow_reading() -> DataLoader[Any]:
    """Four examples a batch, 4 ms each to read."""
    return DataLoader(Digits(reading=4e-3), batch_size=4)


def slow_transform() -> DataLoader[Any]:
    """Four examples a batch, 4 ms each to transform."""
    return DataLoader(Digits(transforming=4e-3), batch_size=4)


def quick_loader() -> DataLoader[Any]:
    """The same without either."""
    return DataLoader(Digits(), batch_size=4)
