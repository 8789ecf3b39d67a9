"""Settings of the tests of statistics."""

from hypothesis import settings

# The first example of a process imports scipy, and the machine may be busy: time says nothing here.
settings.register_profile("any time", deadline=None)
settings.load_profile("any time")
