"""What is measured: one file a family of ops. How it is measured is in accel_micro/.

Importing torch here, once, lets asv fork a process for each case in milliseconds.
"""

import torch  # noqa: F401

from accel_micro.asv_plugin import timing

timing.install()
