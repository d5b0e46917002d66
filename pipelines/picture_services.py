"""What ``synth doctor`` sees of pictures: who ranks, reads, searches and repairs them, and what is missing for it."""

from pathlib import Path

from pipelines.agent.enhancing import has_opencv, make_repairs
from pipelines.config import RunConfig
from pipelines.corpus.sidefiles import find_side_files
from pipelines.errors import SynthError
from pipelines.findings import Finding
from pipelines.seeing import has_clip, make_engine, make_upscaler, picks_clip
from pipelines.settings import OcrEngine

_MISSING = {
    "downsample": "tools.edsr names no weights",
    "perspective": "OpenCV is not installed: pip install 'synth[vision]'",
}
"""Why the tool that repairs a degradation cannot work here."""


def look_at_pictures(config: RunConfig) -> list[Finding]:
    """Return what stands ready for pictures and what does not; nothing is loaded that takes longer than a second."""
    return [
        _look_at_ranker(config),
        *_look_at_encoder(config),
        *(_look_at_engine(config, name) for name in _list_engines(config)),
        *_look_at_repairs(config),
        *_look_at_source(config),
    ]


def _look_at_ranker(config: RunConfig) -> Finding:
    ranker, pretrained = config.groundings.ranker, config.encoder.pretrained
    if picks_clip(config):
        return Finding("ranker", "ok", f"pictures are compared with descriptions by {config.encoder.model}")
    if ranker == "metadata":
        return Finding("ranker", "ok", "pictures are ranked by what is told of them")
    why = "pip install 'synth[clip]'" if pretrained else "encoder.pretrained names no weights"
    return Finding("ranker", "warning", f"pictures are ranked by what is told of them alone: {why}")


def _look_at_encoder(config: RunConfig) -> list[Finding]:
    """Say whether the encoder could be loaded; its weights are found, not read."""
    if not picks_clip(config) and config.image_search.method != "clip":
        return []
    if not has_clip():
        return [Finding("encoder", "problem", "the extra is not installed: pip install 'synth[clip]'")]
    from pipelines.backends.open_clip_names import find_checkpoint, read_architecture

    try:
        read_architecture(config.encoder.model)
        found = find_checkpoint(config.encoder.pretrained)
    except SynthError as error:
        return [Finding("encoder", "problem", str(error))]
    where = f"weights in {found}" if found else f"weights {config.encoder.pretrained}, fetched when first used"
    return [Finding("encoder", "ok", f"{config.encoder.model}, {where}")]


def _list_engines(config: RunConfig) -> list[OcrEngine]:
    named: list[OcrEngine] = [*config.groundings.ocr]
    if config.tools.layout:
        named.append(config.tools.layout)
    return list(dict.fromkeys(named))


def _look_at_engine(config: RunConfig, name: OcrEngine) -> Finding:
    try:
        engine = make_engine(name, config.ocr)
    except SynthError as error:
        return Finding(f"OCR {name}", "problem", str(error))
    return Finding(f"OCR {name}", "ok", engine.identity)


def _look_at_repairs(config: RunConfig) -> list[Finding]:
    if not config.enhancements.share:
        return []
    try:
        possible = make_repairs(make_upscaler(config.tools), has_opencv())
    except SynthError as error:
        return [Finding("degraded pictures", "problem", str(error))]
    wanted = config.enhancements.degradations
    missing = [
        f"{each} is left out: {_MISSING.get(each, 'nothing repairs it')}" for each in wanted if each not in possible
    ]
    if missing:
        return [Finding("degraded pictures", "warning", "; ".join(missing))]
    return [Finding("degraded pictures", "ok", f"{config.enhancements.share:.0%} by {', '.join(wanted)}")]


def _look_at_source(config: RunConfig) -> list[Finding]:
    if not config.corpus.dump or config.commons.fetch or find_side_files(Path(config.corpus.dump)).images is not None:
        return []
    detail = (
        "no images/images.tsv beside the dump and commons.fetch is false: no picture is at hand, every row is refused"
    )
    return [Finding("pictures", "warning" if not config.groundings.require_image else "problem", detail)]
