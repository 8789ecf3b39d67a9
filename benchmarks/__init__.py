"""What is measured: one file a family of ops. How it is measured is in accel_micro/.

Importing torch here, once, lets asv fork a process for each case in milliseconds.
"""

from accel_micro.asv_plugin import timing  # isort: skip  # sees which cores there are before torch may bind them

import torch  # noqa: F401

timing.install()
