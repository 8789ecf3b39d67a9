"""What held for a whole session, written once before it: host, torch, profile, command."""

import sys
from typing import Any, Final

from accel_micro import host
from accel_micro.asv_plugin import saving
from accel_micro.asv_plugin.state import Batch, Run
from accel_micro.devices import chosen
from accel_micro.measure.records import append_line
from accel_micro.results.sessions import FILE_NAME

SCHEMA: Final = 1


def write(run: Run, batch: Batch) -> None:
    """Add the line for this batch, unless it is there or the batch is not saved."""
    path = saving.path_of(batch.results)
    key = (str(batch.results.commit_hash), batch.environment)
    if path is None or key in run.headers:
        return
    run.headers.add(key)
    append_line(path.with_name(FILE_NAME), header(run, batch), default=str)


def header(run: Run, batch: Batch) -> dict[str, Any]:
    """Plain data for JSON."""
    return {
        "schema": SCHEMA,
        "session": run.session,
        "started": run.started,
        "command": sys.argv,
        "profile": run.profile.name,
        "devices": [chosen.name_of(device) for device in run.asked],
        "machine": batch.results.params.get("machine"),
        "build": batch.results.commit_hash,
        "environment": batch.environment,
        "host": host.facts(),
        "torch": batch.report.get("torch"),
    }
