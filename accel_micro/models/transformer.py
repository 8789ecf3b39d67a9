"""A block of an encoder (BERT base; Vaswani et al., arXiv:1706.03762), and a decoder as small as GPT-2's."""

from collections.abc import Iterator
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from accel_micro.models.model import Batch, Network

_WIDTH: Final = 768
_HEADS: Final = 12
_LAYERS: Final = 12
_VOCABULARY: Final = 50257
_CONTEXT: Final = 1024
TOKENS: Final = 128
"""Length of the sequences of a batch."""


def adamw(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    """AdamW, with the rate of GPT-2 small (Brown et al., arXiv:2005.14165, table 2.1)."""
    return torch.optim.AdamW(parameters, lr=6e-4, weight_decay=0.1)


def encoder() -> Network:
    """One layer of BERT base, torch's own. 7,087,872 parameters."""
    layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 4 * _WIDTH, activation="gelu", batch_first=True)
    return Network(layer, _vectors, F.mse_loss, adamw)


def _vectors(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Sequences of normal vectors, and others to come near to, (n, tokens, width)."""
    first, second = torch.randn(2, n, TOKENS, _WIDTH, generator=generator).to(dtype)
    return Batch(first, second)


class Block(nn.Module):
    """Attention to what was before, and a layer of neurons for each token, each normalised first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """(n, tokens, width) to the same."""
        n, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        p = self.dropout.p if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True, dropout_p=p)
        x = x + self.dropout(self.out(seen.transpose(1, 2).reshape(n, tokens, width)))
        hidden = F.gelu(self.wide(self.norm2(x)), approximate="tanh")
        out: Tensor = x + self.dropout(self.narrow(hidden))
        return out


class Decoder(nn.Module):
    """Tokens to logits of the next one; the table of tokens is the last layer too."""

    def __init__(
        self, layers: int = _LAYERS, width: int = _WIDTH, heads: int = _HEADS, vocabulary: int = _VOCABULARY
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(_CONTEXT, width)
        self.dropout = nn.Dropout(0.1)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """(n, tokens) to logits, (n, vocabulary, tokens), as cross entropy wants them."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.places(places))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.tokens.weight).transpose(1, 2)


def _text(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Sequences of random tokens, and the same moved on by one, (n, tokens)."""
    tokens = torch.randint(_VOCABULARY, (n, TOKENS + 1), generator=generator)
    return Batch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())


def gpt2() -> Network:
    """A decoder of the size of GPT-2 small (Radford et al., 2019). 124,439,808 parameters."""
    return Network(Decoder(), _text, F.cross_entropy, adamw)
