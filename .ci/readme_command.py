"""Print a command of the README, so that what it promises is what CI runs.

A command stands in a fenced block behind a marker:

    <!-- test-command -->
    ```sh
    python3 -m venv .venv && …
    ```
"""

import re
import sys
from pathlib import Path


def command(text: str, name: str) -> str:
    """The command behind the marker of that name.

    Raises:
        ValueError: there is no such marker, more than one, or no single fenced block right behind it.
    """
    found = re.findall(rf"^<!-- {re.escape(name)} -->\n+```\w*\n(.+?)\n```$", text, re.MULTILINE | re.DOTALL)
    markers = text.count(f"<!-- {name} -->")
    if len(found) != 1 or markers != 1:
        raise ValueError(
            f"the README has {len(found)} blocks behind {markers} markers <!-- {name} -->, not one"
        )
    return str(found[0])


if __name__ == "__main__":
    try:
        print(command(Path("README.md").read_text(encoding="utf-8"), sys.argv[1]))
    except (IndexError, OSError, ValueError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
