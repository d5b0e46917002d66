"""Pictures: which are taken, what they are seen with, and how some are degraded."""

from typing import Annotated, Literal

from pydantic import Field

from pipelines.settings.base import Section

OcrEngine = Literal["rapidocr", "tesseract", "paddlex", "layer"]


class GroundingsConfig(Section):
    """Pictures."""

    require_image: bool = Field(True, description="refuse rows without a usable picture")
    min_side: int = Field(512, ge=1, description="shorter side, pixels")
    min_answers: int = Field(5, ge=0, description="distinct answers over all anchors of the type (N_img); 0 is off")
    retrieval_rank: int = Field(
        10, ge=0, description="one search for the question may not find the answer's page among so many; 0 is off"
    )
    candidates: int = Field(8, ge=1, description="pictures compared for an anchor (K)")
    ranker: Literal["auto", "clip", "metadata"] = Field(
        "auto",
        description="clip: by similarity to a description of the anchor; metadata: by where the picture stands, what "
        "its file is called and what Commons says it depicts; auto: clip where [encoder] has weights and the extra is "
        "installed",
    )
    decides: Literal["margin", "threshold", "both"] = Field(
        "margin", description="clip: what a picture must have. margin: more likeness than every distractor"
    )
    threshold: float = Field(0.28, ge=-1.0, le=1.0, description="clip: absolute similarity (published)")
    min_margin: float = Field(0.0, ge=0.0, le=2.0, description="clip: similarity beyond the best distractor's")
    distractors: int = Field(20, ge=1, description="clip: entities of the anchor's type it is held against, at least")
    avoid_lead: bool = Field(
        False, description="take the article's lead picture only where no other will do: it is the easiest to look up"
    )
    ocr: tuple[OcrEngine, ...] = Field(
        ("rapidocr",), description="engines that look for readable names; () leaves that check out"
    )
    refuse_simple: bool = Field(True, description="refuse flags, logos, arms, maps, cards of text and plain drawings")
    training_pixels: int = Field(262_144, ge=1, description="pixels of a picture as a student sees it")


class EncoderConfig(Section):
    """The model that says which picture fits which description (open_clip; needs the extra `clip`)."""

    model: str = Field("ViT-L-14-quickgelu", description="architecture, as open_clip names it")
    pretrained: str = Field(
        "", description="weights: a name of open_clip's, or a checkpoint file; empty: there is no encoder"
    )
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N")
    precision: Literal["fp32", "bf16", "fp16"] = Field("fp32", description="of the weights and the arithmetic")
    batch: int = Field(64, ge=1, description="pictures encoded together")
    threads: int = Field(0, ge=0, description="threads that decode pictures; 0 is one for each core")


class ImageSearchConfig(Section):
    """The corpus's search by picture."""

    method: Literal["hash", "clip"] = Field(
        "hash", description="hash: by perceptual hash, finds copies; clip: by [encoder], finds likeness and parts, too"
    )


class OcrConfig(Section):
    """Engines that read the text in pictures."""

    languages: str = Field("eng", pattern=r"^[a-z_]+(\+[a-z_]+)*$", description="tesseract: languages, as eng+deu")
    url: str = Field("", pattern=r"^(https?://[^\s@?#]+)?$", description="paddlex: address of the layout service")
    seconds: float = Field(60.0, gt=0.0, description="longest that one picture may take")


class EnhancementsConfig(Section):
    """The share of questions whose picture is degraded, each with the tool that repairs it (OpenSearch-VL, 3.2)."""

    share: float = Field(0.1, ge=0.0, le=1.0, description="share of the questions; 0 degrades none")
    degradations: tuple[Literal["blur", "downsample", "perspective"], ...] = Field(
        ("blur", "downsample", "perspective"), description="which, in equal shares"
    )
    strengths: tuple[Annotated[float, Field(gt=0.0, le=1.0)], ...] = Field(
        (0.25, 0.5, 0.75, 1.0),
        description="tried from the one drawn upwards, until the picture is of no use any more; what is then beyond "
        "repair is tried again at strengths between",
    )
