"""The audit of synchronisation: what stopwatches read on this machine that wait wrongly, or not at all, beside ours."""

from accel_micro.doctor.sync.audit import Audit, Row, audit, exit_code
from accel_micro.doctor.sync.rendering import render, to_json

__all__ = ["Audit", "Row", "audit", "exit_code", "render", "to_json"]
