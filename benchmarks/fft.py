"""Fourier transforms. Powers of two are easiest; 1000 has factors 2 and 5; a prime needs another algorithm."""

import math

import torch

from accel_micro.suite import op

ROWS = {
    "quick": ["rows=64 n=1024"],
    "standard": ["rows=1 n=1024", "rows=64 n=1000", "rows=64 n=1009", "rows=1 n=1048576"],
    "full": ["rows=4096 n=4096", "rows=1 n=16777216"],
}
IMAGES = {"standard": ["images=16 n=64", "images=3 n=512"], "full": ["images=64 n=1024"]}
FACTS = {"dtypes": ("float32", "float64"), "tolerance": 4.0}


def _flops(rows, n):
    """5 n log₂ n for complex numbers, by convention; half of that for real ones."""
    return 2.5 * rows * n * math.log2(n)


def _of_images(images, n):
    return 2 * _flops(images * n, n)


@op(**ROWS, **FACTS, flops=_flops)
def rfft(t, rows, n):
    """Of real rows."""
    x = t(rows, n)
    return lambda: torch.view_as_real(torch.fft.rfft(x))


@op(standard=ROWS["quick"], full=ROWS["full"], **FACTS, flops=_flops)
def irfft(t, rows, n):
    """Back to real rows."""
    x = t(rows, n // 2 + 1, 2)
    return lambda: torch.fft.irfft(torch.view_as_complex(x), n)


@op(standard=ROWS["quick"], full=ROWS["full"], **FACTS, flops=lambda rows, n: 2 * _flops(rows, n))
def fft(t, rows, n):
    """Of complex rows."""
    x = t(rows, n, 2)
    return lambda: torch.view_as_real(torch.fft.fft(torch.view_as_complex(x)))


@op(**IMAGES, **FACTS, flops=_of_images)
def rfft2(t, images, n):
    """Of images of n×n."""
    x = t(images, n, n)
    return lambda: torch.view_as_real(torch.fft.rfft2(x))


@op(
    full=["speech: rows=8 length=160000 n=400"],
    **FACTS,
    flops=lambda rows, length, n: _flops(4 * rows * length / n, n),
)
def stft(t, rows, length, n):
    """Spectra of windows that overlap by three quarters."""
    x, window = t(rows, length), torch.hann_window(n, device=t.here, dtype=t.floating)
    return lambda: torch.view_as_real(torch.stft(x, n, n // 4, window=window, return_complex=True))


@op(
    full=["speech: rows=8 frames=1601 n=400"], **FACTS, flops=lambda rows, frames, n: _flops(rows * frames, n)
)
def istft(t, rows, frames, n):
    """Sound from such spectra."""
    x, window = t(rows, n // 2 + 1, frames, 2), torch.hann_window(n, device=t.here, dtype=t.floating)
    return lambda: torch.istft(torch.view_as_complex(x), n, n // 4, window=window)
