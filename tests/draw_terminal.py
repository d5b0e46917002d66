"""Draw the panel of a large run for the documentation: ``python -m tests.draw_terminal``."""

import io
from pathlib import Path

from rich.console import Console

from pipelines.run.panel import render_panel
from tests.pipelines.run.test_panel import make_run

FOLDER = Path(__file__).parents[1] / "data_cards" / "docs" / "images"
LOG = Path("workspace/logs/20261127-101500-0a1b2c3d.log")


def main() -> None:
    """Write ``panel-80.svg`` and ``panel-120.svg``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for width in (80, 120):
        console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
        console.print(render_panel(make_run(), LOG, width, 23))
        console.save_svg(str(FOLDER / f"panel-{width}.svg"), title="synth run", unique_id=f"panel-{width}")


if __name__ == "__main__":
    main()
