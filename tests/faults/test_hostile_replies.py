"""A server that spoils a fifth of its replies: nothing that is kept rests on one, and every row is accounted for."""

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.config.settings import ModelConfig
from pipelines.corpus.store import Corpus
from pipelines.errors import ConfigError, Unavailable
from pipelines.ids import digest_value, draw_unit
from pipelines.run import chains
from pipelines.run.assembly import Assembly
from pipelines.run.models import Roles
from pipelines.run.progress import Reporter
from pipelines.run.workspace import StageFolder, Workspace
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.clients.recorded import RecordedChat
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest
from pipelines.toy.writer import TemplatesModel
from tests.chaos.driving import digest_files
from tests.conftest import SETTINGS, DemoRun
from tests.pipelines.services.clients.live_servers import Answer
from tests.pipelines.services.clients.openai_server import ChatServer, Fault, make_completion, make_error, run_chat
from tests.sampled import SAMPLE

pytestmark = pytest.mark.skipif(SAMPLE, reason="takes minutes")
SPOILT = 0.2
WRITING = ("questions", "rewrites", "groundings")
METHODS = ("paths", "injection")
BEFORE = {"paths": ("seeds", "paths"), "injection": ("seeds",)}
"""By method, the stages before those that write."""
ERRORS = {"unparseable-reply", "cut-reply", "refused-reply", "empty-reply"}
REFUSAL = "I'm sorry, but I can't help with that."
DECOY = "Who is the zq decoy of the page?"


def fill_shape(value: Any, text: str) -> Any:
    """Return a reply's value with a text in the place of each of its own."""
    if isinstance(value, dict):
        return {name: fill_shape(part, text) for name, part in value.items()}
    return [fill_shape(part, text) for part in value] if isinstance(value, list) else text


def quote_decoy(text: str) -> str:
    """Return an object of the right shape that is not the reply, as if a page held it."""
    return json.dumps(fill_shape(json.loads(text), DECOY))


SPOILERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "garbage": lambda text: make_completion("%PDF-1.7 \x00\x07 }{ ]["),
    "html": lambda text: make_completion("<html><body>502 Bad Gateway</body></html>"),
    "cut": lambda text: make_completion(text[: len(text) // 2], "length"),
    "cut unmarked": lambda text: make_completion(text[: len(text) * 2 // 3]),
    "marked as cut": lambda text: make_completion(quote_decoy(text), "length"),
    "other keys": lambda text: make_completion(json.dumps({"reply": json.loads(text)})),
    "a list": lambda text: make_completion("[1, 2]"),
    "nulls": lambda text: make_completion(json.dumps(dict.fromkeys(json.loads(text)))),
    "empty": lambda text: make_completion(""),
    "blank": lambda text: make_completion(json.dumps(dict.fromkeys(json.loads(text), " "))),
    "null": lambda text: make_completion(None),
    "no choice": lambda text: make_completion("x") | {"choices": []},
    "refusal": lambda text: make_completion(None, refusal=REFUSAL),
    "refusal as text": lambda text: make_completion(REFUSAL),
    "refusal in shape": lambda text: make_completion(json.dumps(fill_shape(json.loads(text), REFUSAL))),
    "filtered": lambda text: make_completion(quote_decoy(text), "content_filter"),
    "decoy and own": lambda text: make_completion(f"The page says {quote_decoy(text)}. My reply: {text}"),
    "own and decoy": lambda text: make_completion(f"{text}\n\nThe page says {quote_decoy(text)}, which I ignored."),
    "decoy and cut": lambda text: make_completion(f"The page says {quote_decoy(text)}. My reply: {text[:-4]}"),
    "decoy in a cut one": lambda text: make_completion(f'{{"page": {quote_decoy(text)}, "reply": "'),
    "twice the key": lambda text: make_completion(f"{quote_decoy(text)[:-1]}, {text[1:]}"),
    "surrogate": lambda text: make_completion(json.dumps(dict.fromkeys(json.loads(text), "\ud83d"))),
}


@dataclass
class ServedTemplates:
    """Says over the wire what ``templates`` would say; the server sees no inputs, so it is told beforehand."""

    served: OpenAIChat
    said: dict[str, str] = field(default_factory=dict)
    name: str = "served"
    identity: str = "served:1"
    reads_inputs: bool = True

    async def chat(self, request: ChatRequest) -> ChatReply:
        # The prompt alone does not decide what templates say. The seed tells requests of one prompt apart.
        sample = int(digest_value([request.inputs.model_dump(mode="json"), request.sample])[:7], 16)
        messages = [{"role": message.role, "content": message.text} for message in request.messages]
        self.said[digest_value([messages, sample])] = (await TemplatesModel().chat(request)).text
        return await self.served.chat(replace(request, sample=sample))

    def find(self, body: dict[str, Any]) -> tuple[str, str]:
        """Return a request's key and its right reply."""
        key = digest_value([body["messages"], body["seed"]])
        return key, self.said[key]


@dataclass(frozen=True)
class PlainTemplates:
    """The same model with no server between."""

    name: str = "served"
    identity: str = "served:1"
    reads_inputs: bool = True

    async def chat(self, request: ChatRequest) -> ChatReply:
        return await TemplatesModel().chat(request)


@dataclass
class ServedRoles(Roles):
    """Roles with one model for those that write."""

    model: ChatModel = field(kw_only=True)

    def find_model(self, role: str) -> RecordedChat:
        if role in ("writer", "rewriter"):
            return RecordedChat(self.model, self.replies)
        return super().find_model(role)


@dataclass(kw_only=True)
class ServedAssembly(Assembly):
    """An assembly with one model in the roles that write."""

    model: ChatModel

    @cached_property
    def roles(self) -> Roles:
        return ServedRoles(self.config, self.workspace, model=self.model)


@dataclass(frozen=True)
class Outcome:
    """What became of the rows of every stage that writes, in one workspace."""

    folders: dict[str, StageFolder]

    def read(self, stage: str, kind: str) -> dict[str, dict[str, Any]]:
        """Return ``part``, ``rejected`` or ``failed`` rows by id, without the key of their stage."""
        paths = sorted(self.folders[stage].path.glob(f"{kind}-*.parquet"))
        rows = (row for path in paths for row in pq.read_table(path).to_pylist())
        return {row["record_id"]: {name: value for name, value in row.items() if name != "key"} for row in rows}

    @cached_property
    def errors(self) -> Counter[str]:
        return Counter(row["error"] for stage in self.folders for row in self.read(stage, "failed").values())


def run_stages(
    demo: DemoRun, corpus: Corpus, root: Path, method: str, model: ChatModel, stages: Sequence[str] = WRITING
) -> Outcome:
    """Run the stages that write, and those before them, over the shared world."""
    changed = [f"corpus.world={demo.world}", *SETTINGS, f"method={method}", "paths.per_seed=6"]
    config = make_config(read_recipe("demo"), [*changed, "runtime.concurrency=16"])
    assembly = ServedAssembly(config, Workspace(root), corpus, model=model)
    folders = {}
    for plan in assembly.plan_stages():
        (report,) = chains.run_stages([plan], assembly.corpus_entry, 64, Reporter())
        assert report.rows_in == report.kept + sum(report.rejected.values()) + report.failed
        folders[plan.name] = plan.folder
        if plan.name == stages[-1]:
            break
    assembly.roles.replies.close()
    return Outcome({name: folders[name] for name in stages})


Begin = Callable[[str, Path], Path]


@pytest.fixture(scope="module")
def begin(demo, demo_corpus, tmp_path_factory) -> Begin:
    """Gives a folder what the stages before those that write make by a method; no model writes in them."""
    made: dict[str, Path] = {}

    def begin(method: str, root: Path) -> Path:
        if method not in made:
            made[method] = tmp_path_factory.mktemp(f"begun-{method}")
            run_stages(demo, demo_corpus, made[method], method, PlainTemplates(), BEFORE[method])
        return shutil.copytree(made[method], root, dirs_exist_ok=True)

    return begin


def serve(server: ChatServer, patience: float = 1.0, **settings: Any) -> ServedTemplates:
    return ServedTemplates(
        OpenAIChat(ModelConfig(name="tiny", base_url=server.url, **settings), pause=0.01, patience=patience)
    )


def spoil_replies(model: ServedTemplates, seen: Counter[str]) -> Callable[[dict[str, Any]], str | dict[str, Any]]:
    """Return a responder that spoils a fifth of the replies, chosen by the request alone."""

    def respond(body: dict[str, Any]) -> str | dict[str, Any]:
        key, text = model.find(body)
        if draw_unit("spoil", key) >= SPOILT:
            seen["right"] += 1
            return text
        kind = list(SPOILERS)[int(draw_unit("kind", key) * len(SPOILERS))]
        seen[kind] += 1
        return SPOILERS[kind](text)

    return respond


@dataclass(frozen=True)
class Pair:
    """The same stages with every reply right and with a fifth spoilt."""

    clean: Outcome
    spoilt: Outcome
    seen: Counter[str]
    root: Path
    method: str


@pytest.fixture(scope="module", params=METHODS)
def pair(request, demo, demo_corpus, begin, tmp_path_factory) -> Pair:
    root = tmp_path_factory.mktemp("hostile")
    clean = run_stages(demo, demo_corpus, begin(request.param, root / "clean"), request.param, PlainTemplates())
    seen: Counter[str] = Counter()
    with run_chat() as server:
        model = serve(server)
        server.say = spoil_replies(model, seen)
        spoilt = run_stages(demo, demo_corpus, begin(request.param, root / "spoilt"), request.param, model)
    return Pair(clean, spoilt, seen, root, request.param)


def test_a_fifth_of_many_replies_is_spoilt_in_every_way(pair):
    wrong = sum(pair.seen.values()) - pair.seen["right"]
    assert 0.1 < wrong / sum(pair.seen.values()) < 0.3
    kinds = ("part", "rejected", "failed")
    entered = sum(len(pair.spoilt.read(stage, kind)) for stage in pair.spoilt.folders for kind in kinds)
    if pair.method == "paths":
        assert set(pair.seen) == {*SPOILERS, "right"}
        assert entered >= 400


@pytest.mark.parametrize("stage", WRITING)
def test_every_row_that_is_kept_is_the_row_of_a_run_without_a_bad_reply(pair, stage):
    clean, spoilt = pair.clean.read(stage, "part"), pair.spoilt.read(stage, "part")
    for record_id, row in spoilt.items():
        assert row == clean[record_id]


def test_a_bad_reply_fails_its_row_by_name_and_refuses_none(pair):
    assert len(pair.spoilt.errors) >= 3
    for stage in pair.spoilt.folders:
        before = pair.clean.read(stage, "failed")
        new = [row for name, row in pair.spoilt.read(stage, "failed").items() if name not in before]
        assert {row["error"] for row in new} <= ERRORS
        assert all(re.search(r"/v\d+ on served: ", row["detail"]) for row in new)
        assert pair.spoilt.read(stage, "rejected").items() <= pair.clean.read(stage, "rejected").items()


def test_nothing_is_asked_twice_and_no_recorded_garbage_passes_for_good(pair, demo, demo_corpus):
    before = {stage: digest_files(folder.path, "*.parquet") for stage, folder in pair.spoilt.folders.items()}
    for folder in pair.spoilt.folders.values():
        for path in folder.path.iterdir():
            path.unlink()
    with run_chat() as server:
        model = serve(server)
        again = run_stages(demo, demo_corpus, pair.root / "spoilt", pair.method, model)
        assert server.requests == []
    assert {stage: digest_files(folder.path, "*.parquet") for stage, folder in again.folders.items()} == before


# A service that is away


STUMBLES = (
    make_error(429, "slow down"),
    Fault(500),
    Fault(hang_up=True),
    Fault(body=b'{"choices": [', cut=9),
    Fault(body=b'{"choices": [', drip=0.2),
)


def stumble(model: ServedTemplates) -> Callable[[dict[str, Any]], str | Answer]:
    """Return a responder that gives one request of 25 a fault at its first try and the right reply afterwards."""
    tried: set[str] = set()

    def respond(body: dict[str, Any]) -> str | Answer:
        key, text = model.find(body)
        if key in tried or draw_unit("fault", key) >= 0.04:
            return text
        tried.add(key)
        return STUMBLES[int(draw_unit("which", key) * len(STUMBLES))]

    return respond


def test_a_service_that_stumbles_and_slows_down_changes_no_row(demo, demo_corpus, begin, pair):
    root = begin(pair.method, pair.root / "stumbling")
    with run_chat() as server:
        model = serve(server, timeout=1.0, patience=60.0)
        server.say = stumble(model)
        outcome = run_stages(demo, demo_corpus, root, pair.method, model, ("questions",))
    for kind in ("part", "rejected", "failed"):
        clean = pair.clean.read("questions", kind)
        assert outcome.read("questions", kind) == clean


@pytest.mark.parametrize(
    ("fault", "error"), [(Fault(503), Unavailable), (make_error(404, "no such model"), ConfigError)]
)
def test_a_service_that_fails_for_good_stops_the_run_and_nothing_is_sealed(
    demo, demo_corpus, begin, tmp_path, fault, error
):
    begin("paths", tmp_path)
    with run_chat(lambda body: fault) as server, pytest.raises(error):
        run_stages(demo, demo_corpus, tmp_path, "paths", serve(server))
    assert not list(tmp_path.glob("stages/questions/*/manifest.json"))
