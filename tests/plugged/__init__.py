"""Two distributions that add to synth, as others write them: a check, and a stage, a backend, an exporter, a source."""

from pathlib import Path

HERE = Path(__file__).parent
POINTS = {
    "acme-words": {"checks": {"plain": "acme_words:PlainWords"}},
    "acme-parts": {
        "stages": {"brief": "acme_parts.brief:Brief"},
        "backends": {"shrug": "acme_parts.shrug:Shrug", "silence": "acme_parts.shrug:Silence"},
        "exporters": {"lines": "acme_parts.lines:make_exporter"},
        "sources": {"pairs": "acme_parts.pairs:make_source"},
        "prompts": {"wording": "acme_parts.wording"},
        "checks": {"broken": "acme_parts.broken:Check"},
    },
}


def install(folder: Path, distribution: str, version: str = "1.0") -> Path:
    """Put a distribution into a folder as an installer leaves it, and return the folder."""
    package = distribution.replace("-", "_")
    for old in folder.glob(f"{package}-*.dist-info"):
        for path in old.iterdir():
            path.unlink()
        old.rmdir()
    for source in (HERE / package).rglob("*"):
        if source.is_file() and source.suffix in {".py", ".md"}:
            target = folder / package / source.relative_to(HERE / package)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    told = folder / f"{package}-{version}.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    groups = (
        f"[synth.{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in POINTS[distribution].items()
    )
    (told / "entry_points.txt").write_text("\n".join(groups))
    return folder
