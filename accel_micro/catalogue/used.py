"""Which operators the reference models run: each trains and infers once, on one example, on the CPU."""

import warnings

from accel_micro import models


def operators(name: str) -> tuple[str, ...]:
    """Of a training step and an inference step of the model of that name, in the order of their first call."""
    from accel_micro.catalogue.noting import Noting

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = models.build(name)
        batch = model.batch(1)
        with Noting() as noted:
            model.training_step(batch)
            model.inference_step(batch)
    return tuple(noted.found)
