"""Pages about all results of a folder, for the file system: overview, significance, cases, builds, machines.

They open by a double click and ask no server for anything. Tables show all they have without scripts; sorting,
filtering and the slider of a history need them. `docs/pages.md` shows what they look like.
"""

from accel_micro.report.site.explanations import FOLDER as EXPLANATIONS
from accel_micro.report.site.writing import FIRST, Written, publish_explanation, write_site

__all__ = ["EXPLANATIONS", "FIRST", "Written", "publish_explanation", "write_site"]
