"""Which ops a suite has, what a profile runs of them, and what that costs."""

from accel_micro.catalogue.choosing import Chosen, NotOneCase, choose
from accel_micro.catalogue.listing import Listed, Listing, list_ops
from accel_micro.catalogue.loading import NotASuite, load

__all__ = ["Chosen", "Listed", "Listing", "NotASuite", "NotOneCase", "choose", "list_ops", "load"]
