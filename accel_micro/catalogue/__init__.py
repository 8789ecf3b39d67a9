"""Which ops a suite has, what a profile runs of them, and what that costs."""

from accel_micro.catalogue.listing import Listed, Listing, list_ops
from accel_micro.catalogue.loading import NotASuite, load

__all__ = ["Listed", "Listing", "NotASuite", "list_ops", "load"]
