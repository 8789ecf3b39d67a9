"""Records to what people and programs read: tables, JSON, Markdown, CSV, an HTML page, and a run's progress.

Everything goes through `rows.collect`, so that no two forms of a report can disagree. Importing this loads
neither torch nor scipy, rich or jinja2.
"""

from accel_micro.report.render import FORMATS, render
from accel_micro.report.rows import Report, Row, collect

__all__ = ["FORMATS", "Report", "Row", "collect", "render"]
