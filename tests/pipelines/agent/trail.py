"""A three-link trail with fake backends, shared by the tests of the agent, the teacher and the two stages."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path

from PIL import Image

from pipelines.agent.cascade import DEFAULTS, examine_rollout
from pipelines.agent.dialects import SYNTH, Dialect, find_dialect
from pipelines.agent.loop import Agent
from pipelines.agent.tools import ToolBox
from pipelines.agent.transcript import render_messages
from pipelines.config.settings import RolloutsConfig, ToolsConfig
from pipelines.pictures import PictureSource, PictureStore
from pipelines.services.protocols import (
    ChatReply,
    ChatRequest,
    ImageHit,
    Message,
    PageNotFound,
    PageText,
    PictureFile,
    TextHit,
)
from schemas.datasets import Enhancement, Picture, Rollout
from schemas.proofs import Answer, Evidence, Hop, PathNode, Proof
from tests.pipelines.stages.players import read_rightly, screen_rightly

BASE = "https://en.wikipedia.org/wiki/"
TITLES = ("Kelm Bridge", "Ana Kovač", "Marlow (town)")
TEXTS = {
    "Kelm Bridge": "Designer: Ana Kovač\nOpened: 1931\n\nKelm Bridge is a bridge in Velm.",
    "Ana Kovač": "Birth place: Marlow\n\nAna Kovač was an engineer.",
    "Marlow (town)": "Founded: 5 April 1204\nRiver: Ister\n\nMarlow is a town.",
    "Marlow (painter)": "Marlow was a painter.",
}
ANSWER = Answer(
    type="date",
    value="1204-04-05",
    precision="day",
    unit="",
    surface="5 April 1204",
    aliases=("April 5, 1204",),
    key="date:1204-04-05",
)
SOURCE = PictureSource("Kelm.jpg", "A. Author", "CC BY-SA 4.0", "https://example.org/by-sa", "https://example.org/Kelm")


def make_url(title: str) -> str:
    return BASE + title.replace(" ", "_")


def list_messages(rollout: Rollout) -> tuple[Message, ...]:
    """Return a whole rollout as messages: system, question with ``img_1``, then turn by turn."""
    first = tuple(image.picture.sha256 for image in rollout.images if image.id == "img_1")
    opening = (Message("system", rollout.system), Message("user", rollout.question, first))
    return render_messages(opening, rollout.steps, rollout.images, find_dialect(rollout.dialect))


def make_picture(folder: Path) -> Picture:
    target = BytesIO()
    image = Image.linear_gradient("L").resize((640, 480)).convert("RGB")
    image.save(target, "JPEG", quality=80)
    return PictureStore(folder).add_bytes(target.getvalue(), SOURCE)


def make_proof(titles: Sequence[str] = TITLES) -> Proof:
    roles = ("anchor", *("bridge" for _ in titles[1:-1]), "answer")
    nodes = tuple(
        PathNode(page_id=i, title=title, role=role, type="place", in_degree=3)
        for i, (title, role) in enumerate(zip(titles, roles, strict=True))
    )
    evidence = Evidence(
        page_id=0, title=titles[0], revision=1, kind="infobox", key="k", start=0, end=1, text="x", link_start=0
    )
    relations = ("designer", "birth_place", "river", "mouth")
    hops = tuple(
        Hop(index=i + 1, relation=relations[i], subject_id=i, object_id=i + 1, clause="", evidence=evidence)
        for i in range(len(titles) - 1)
    )
    return Proof(
        corpus="c",
        snapshot="20260101",
        nodes=nodes,
        hops=hops,
        answer_relation="founded",
        answer_evidence=evidence,
        constraints=(),
        counts=(),
        alias_digest="",
    )


def make_question(picture: Picture | None, number: int = 1) -> Enhancement:
    text = "When was the birthplace of the designer of the bridge in the image founded?"
    return Enhancement(
        record_id=f"question-{number:04d}",
        parent_id="rewrite-1",
        split="sft",
        domain="Building/Place",
        text=text,
        fuzzy=text,
        canonical=text,
        picture=picture,
        answer=ANSWER,
        proof=make_proof(),
        cells=(),
        reading=read_rightly(text, make_proof(), ANSWER),
        screening=screen_rightly(text, make_proof(), ANSWER),
    )


@dataclass(frozen=True)
class FakeTextSearch:
    """Finds pages that share a word with the query, most shared words first."""

    texts: dict[str, str] = field(default_factory=lambda: dict(TEXTS))
    identity: str = "fake-text"

    async def search_text(self, query: str, count: int) -> tuple[TextHit, ...]:
        words = set(query.casefold().split())
        scored = [(-len(words & set(title.casefold().replace("(", "").split())), title) for title in self.texts]
        found = [title for score, title in sorted(scored) if score < 0][:count]
        return tuple(TextHit(make_url(title), title, self.texts[title]) for title in found)


@dataclass(frozen=True)
class FakeImageSearch:
    titles: tuple[str, ...] = (TITLES[0],)
    identity: str = "fake-images"

    async def search_image(self, picture: PictureFile, count: int) -> tuple[ImageHit, ...]:
        return tuple(ImageHit(make_url(title), title, "A page.", 0.0) for title in self.titles[:count])


@dataclass(frozen=True)
class FakePages:
    texts: dict[str, str] = field(default_factory=lambda: dict(TEXTS))
    identity: str = "fake-pages"

    async def read_page(self, url: str) -> PageText:
        title = url.removeprefix(BASE).replace("_", " ")
        if title not in self.texts:
            raise PageNotFound(url)
        return PageText(url, title, self.texts[title])


@dataclass(frozen=True)
class FakeModel:
    """Says its lines one after the other, by the number of assistant messages so far; a line may be a whole reply."""

    lines: tuple[str | ChatReply, ...]
    name: str = "fake-model"
    identity: str = "fake-model@1"
    reads_inputs: bool = False
    requests: list[ChatRequest] = field(default_factory=list)

    async def chat(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        said = sum(message.role == "assistant" for message in request.messages)
        line = self.lines[said]
        return line if isinstance(line, ChatReply) else ChatReply(line, 1, 1)


def make_tools(folder: Path, **changes) -> ToolBox:
    """Return tools over fakes; changes are keys of the section ``[tools]`` or attributes of the tool box."""
    keys = {name: changes.pop(name) for name in ("pages_read", "thumbnails") if name in changes}
    settings = ToolsConfig(**keys)
    tools = ToolBox(FakeTextSearch(), FakeImageSearch(), FakePages(), PictureStore(folder), settings)
    return replace(tools, **{"blocked_hosts": (), **changes})


def make_agent(model, tools: ToolBox, dialect: Dialect = SYNTH, **settings) -> Agent:
    """Return an agent; settings are those of its limits or its own."""
    limits = {name: settings.pop(name) for name in ("calls", "context_tokens") if name in settings}
    values = {f"max_{name}": value for name, value in limits.items()}
    rollouts = RolloutsConfig.model_construct(**(RolloutsConfig().model_dump() | values))
    return Agent(model, dialect.load_prompt(), tools, rollouts, dialect=dialect, **settings)


def find_faults(rollout, judgement=None, rules=DEFAULTS):
    """Return every reason against a rollout, in the cascade's order."""
    return examine_rollout(rollout, judgement, rules).faults
