"""`python -m accel_micro`."""

from accel_micro.cli import main

main()
