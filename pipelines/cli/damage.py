"""What ``synth status --check`` prints of damaged and missing files."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Column, Table
from rich.text import Text

from pipelines.run.integrity import Finding


def render_damage(root: Path, findings: Sequence[Finding]) -> Table | Text:
    """Return the findings in a workspace as a table."""
    if not findings:
        return Text("every file is as it was written")
    table = Table(Column("file", overflow="fold", ratio=2), "what", "what to do", title="Damage", box=SIMPLE_HEAD)
    for finding in findings:
        table.add_row(Text(str(finding.path.relative_to(root))), Text(finding.what), Text(finding.remedy))
    return table
