"""A language model of two recurrent layers, as that of pytorch/examples (word_language_model): plain SGD."""

from collections.abc import Iterator
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from accel_micro.models.model import Batch, Network

_VOCABULARY: Final = 33278
"""Words of WikiText-2, on which the example is trained."""
_WIDTH: Final = 200
TOKENS: Final = 35
"""Length of the sequences of a batch."""


class LSTM(nn.Module):
    """Words to logarithms of the probabilities of the next one, at the example's sizes. 13,987,678 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.2)
        self.encoder = nn.Embedding(_VOCABULARY, _WIDTH)
        self.rnn = nn.LSTM(_WIDTH, _WIDTH, num_layers=2, dropout=0.2)
        self.decoder = nn.Linear(_WIDTH, _VOCABULARY)
        for table in (self.encoder.weight, self.decoder.weight):
            nn.init.uniform_(table, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, words: Tensor) -> Tensor:
        """(words, n) to (words × n, vocabulary)."""
        hidden, _ = self.rnn(self.drop(self.encoder(words)))
        return F.log_softmax(self.decoder(self.drop(hidden)).flatten(0, 1), dim=1)


def batch(n: int, dtype: torch.dtype, generator: torch.Generator) -> Batch:
    """Sequences of random words, (words, n), and the word after each, (words × n)."""
    words = torch.randint(_VOCABULARY, (TOKENS + 1, n), generator=generator)
    return Batch(words[:-1].contiguous(), words[1:].reshape(-1))


def sgd(parameters: Iterator[nn.Parameter]) -> torch.optim.Optimizer:
    """Descent with a rate that needs no clipping of gradients, which the example's 20 does."""
    return torch.optim.SGD(parameters, lr=1.0)


def lstm() -> Network:
    """The network with new weights."""
    return Network(LSTM(), batch, F.nll_loss, sgd)
