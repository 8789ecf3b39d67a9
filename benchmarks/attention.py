"""Scaled dot product attention: b sequences, h heads, q queries against kv keys of d numbers.

`sdpa` is torch's own choice of backend, the others name theirs; where a backend does not exist the case is
skipped with torch's reason. From one short sentence (launch-bound) to thousands of tokens (compute-bound).
With `kv_heads` several heads share keys (grouped-query attention). `decode` is one new token against a long
past, bound by memory.
"""

import warnings

import torch
import torch.nn.functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

from accel_micro.suite import op

SMALL = "b=1 h=4 q=64 kv=64 d=32"
GPT2 = "gpt2: b=2 h=12 q=1024 kv=1024 d=64 causal=True"
LLAMA3 = "llama3: b=1 h=32 q=512 kv=512 d=128 causal=True kv_heads=8"
MODELS = [
    "bert: b=8 h=12 q=128 kv=128 d=64",
    "vit_b_16: b=8 h=12 q=197 kv=197 d=64",
    "diffusion cross: b=2 h=8 q=4096 kv=77 d=40",
]
LONG = [
    "llama3: b=1 h=32 q=2048 kv=2048 d=128 causal=True kv_heads=8",
    "b=1 h=16 q=4096 kv=4096 d=64",
    "b=1 h=4 q=8192 kv=8192 d=128 causal=True",
]
BACKEND_SHAPES = {
    "quick": ["gpt2: b=1 h=12 q=256 kv=256 d=64 causal=True"],
    "standard": [SMALL, GPT2, LLAMA3],
    "full": [*MODELS, *LONG],
}


def _flops(b, h, q, kv, d, causal=False):
    """Two products over the pairs of query and key that see each other; causal, about half of them.

    The softmax is not counted. Backward has four such products; flash repeats one more, no useful work.
    """
    pairs = q * (q + 1) // 2 if causal else q * kv
    return 4 * b * h * pairs * d


# Twice the tolerance: the probabilities between the products are rounded too.
WORK = {"flops": _flops, "backward_flops": 2, "tolerance": 2.0}


def _sdpa(t, backend, b, h, q, kv, d, causal, kv_heads):
    query, key, value = t(b, h, q, d), t(b, kv_heads or h, kv, d), t(b, kv_heads or h, kv, d)
    options = {"is_causal": causal}
    if kv_heads is not None:
        if "enable_gqa" not in F.scaled_dot_product_attention.__doc__:
            raise NotImplementedError("heads that share keys and values came with torch 2.5")
        options["enable_gqa"] = True
    backend = SDPBackend.MATH if t.reference else backend
    if backend is not None:
        _require(backend, query, key, value, options)
        t.within(sdpa_kernel, backend)
    return lambda: F.scaled_dot_product_attention(query, key, value, **options)


def _require(backend, query, key, value, options):
    """Raise NotImplementedError unless torch takes that backend: some devices take another without a word."""
    if backend == SDPBackend.MATH:
        return
    with sdpa_kernel(backend), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            chosen = SDPBackend(torch._fused_sdp_choice(query, key, value, **options))
        except RuntimeError as error:
            reasons = [str(warning.message) for warning in caught] + [str(error)]
            reason = next(r for r in reasons if "not used because" not in r and "disabled" not in r)
            raise NotImplementedError(f"no {backend.name} here: {reason.split('. ')[0]}") from None
    if chosen != backend:
        raise NotImplementedError(f"no {backend.name} here: torch takes {chosen.name} instead")


@op(
    quick=[SMALL, "gpt2: b=1 h=12 q=1024 kv=1024 d=64 causal=True"],
    standard=[GPT2, LLAMA3, *MODELS],
    full=LONG,
    sweep="gpt2: b=1 h=12 q=16..4096 kv=16..4096 d=64 causal=True",
    **WORK,
)
def sdpa(t, b, h, q, kv, d, causal=False, kv_heads=None):
    """The backend that torch chooses."""
    return _sdpa(t, None, b, h, q, kv, d, causal, kv_heads)


@op(standard=[GPT2.replace("b=2", "b=1")], full=[SMALL, GPT2], **WORK)
def sdpa_of_tokens(t, b, h, q, kv, d, causal=False):
    """The same with heads side by side in memory, as a layer leaves them: a transposed view, no copy."""
    query, key, value = (t(b, n, h, d).transpose(1, 2) for n in (q, kv, kv))
    if t.reference:
        t.within(sdpa_kernel, SDPBackend.MATH)
    return lambda: F.scaled_dot_product_attention(query, key, value, is_causal=causal)


@op(**BACKEND_SHAPES, **WORK)
def sdpa_math(t, b, h, q, kv, d, causal=False, kv_heads=None):
    """Product, softmax, product: the scores are written to memory."""
    return _sdpa(t, SDPBackend.MATH, b, h, q, kv, d, causal, kv_heads)


@op(**BACKEND_SHAPES, **WORK)
def sdpa_flash(t, b, h, q, kv, d, causal=False, kv_heads=None):
    """Blocks of keys at a time, the scores never in memory (Dao et al., 2022)."""
    return _sdpa(t, SDPBackend.FLASH_ATTENTION, b, h, q, kv, d, causal, kv_heads)


@op(
    unsupported=lambda device: "the CPU has no memory-efficient attention" if device == "cpu" else None,
    **BACKEND_SHAPES,
    **WORK,
)
def sdpa_efficient(t, b, h, q, kv, d, causal=False, kv_heads=None):
    """The memory-efficient kernels of xFormers."""
    return _sdpa(t, SDPBackend.EFFICIENT_ATTENTION, b, h, q, kv, d, causal, kv_heads)


@op(
    unsupported=lambda device: None if device == "cuda" else f"cuDNN is not for {device}",
    **BACKEND_SHAPES,
    **WORK,
)
def sdpa_cudnn(t, b, h, q, kv, d, causal=False, kv_heads=None):
    """The kernels of cuDNN."""
    return _sdpa(t, SDPBackend.CUDNN_ATTENTION, b, h, q, kv, d, causal, kv_heads)


@op(
    quick=["gpt2: b=1 h=12 kv=1024 d=64"],
    standard=["llama3: b=1 h=32 kv=4096 d=128 kv_heads=8"],
    full=[
        "llama3: b=8 h=32 kv=2048 d=128 kv_heads=8",
        "llama3: b=1 h=32 kv=65536 d=128 kv_heads=8",
        "llama3: b=8 h=32 kv=8192 d=128 kv_heads=8",
    ],
    cold=["gpt2: b=1 h=12 kv=1024 d=64"],
    flops=lambda b, h, kv, d: _flops(b, h, 1, kv, d),
    tolerance=2.0,
    backward=False,
)
def decode(t, b, h, kv, d, kv_heads=None):
    """One query, as when a language model writes its next token."""
    return _sdpa(t, None, b, h, 1, kv, d, False, kv_heads)


@op(
    full=["bert: b=8 s=128 width=768 heads=12"],
    flops=lambda b, s, width: 4 * b * s * width * (6 * width + s),
    tolerance=2.0,
    backward=False,
)
def encoder_layer(t, b, s, width, heads):
    """A layer of BERT as torch infers it: one operator for attention, neurons and norms."""
    options = {"dim_feedforward": 4 * width, "batch_first": True, "device": t.here, "dtype": t.floating}
    layer = torch.nn.TransformerEncoderLayer(width, heads, activation="gelu", **options).eval()
    for parameter in layer.requires_grad_(False).parameters():
        t.fill(parameter, scale=width**-0.5)
    x = t(b, s, width)
    return lambda: layer(x)
