"""Seeds by SPARQL: the same as from the dumps, and each candidate in one place."""

from dataclasses import dataclass

import pytest

from pipelines.cli.commands import run_recipe
from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError, Unavailable
from pipelines.graph import seeds as graph_seeds
from pipelines.graph.seeds import SeedGate
from pipelines.run import models
from pipelines.run.assembly import Assembly
from pipelines.run.workspace import Workspace
from pipelines.services.clients.recorded import Recorded
from pipelines.services.clients.replies import open_replies
from pipelines.services.clients.sparql import SparqlEndpoint
from pipelines.splits import SplitRule
from pipelines.stages import seeds as stage_seeds
from pipelines.stages.seeds import Seeds, WikidataSource
from schemas.datasets import Seed
from tests.pipelines.corpus.entity_lines import make_entity, render_line, write_dump
from tests.pipelines.services.clients.sparql_server import (
    FAULTS,
    PREFIXES,
    Answer,
    describe_item,
    load_store,
    serve_sparql,
)
from tests.toy import PAGES, build_toy_corpus
from tests.turtle import make_turtle

SPLITS = SplitRule({"sft": 0.6, "rl": 0.3, "eval": 0.1}, seed=7)
SITE = "https://toy.example/"
RARE = SeedGate(rule="vsearcher", classes=("Q100", "Q200"), require_image=False)
LINKED = RARE.model_copy(update={"rule": "opensearch-vl", "min_in_degree": 2, "hub_in_degree": 4})
GATES = {
    "rare": RARE,
    "linked": LINKED,
    "one class": RARE.model_copy(update={"classes": ("Q200",)}),
}


def make_endpoint(address, **changes):
    settings = {"contact": "x@example.org", "pause": 0.0, "tries": 2, "backoff": 0.01} | changes
    return SparqlEndpoint(address, **settings)


@dataclass(frozen=True)
class Described:
    """What Wikidata says of one page of the toy wiki."""

    number: int
    title: str
    sitelinks: int
    statements: int
    identifiers: int
    classes: tuple[int, ...]

    def as_turtle(self):
        classes = tuple(f"Q{number}" for number in self.classes)
        turtle = describe_item(self.number, self.sitelinks, self.statements, classes, self.identifiers, self.title)
        return turtle.replace("https://en.wikipedia.org/", SITE)

    def as_line(self):
        entity = make_entity(
            self.number, self.sitelinks, self.statements, self.identifiers, self.classes, title=self.title
        )
        entity["sitelinks"]["toywiki"] = entity["sitelinks"].pop("enwiki") | {"site": "toywiki"}
        return render_line(entity)


CLASSES = ((100,), (100, 200), (300,), (200,), (100, 300))
DESCRIBED = [
    Described(10 + n, title, 1 + n % 6, 18 + n * 5 % 11, n % 5, CLASSES[n % len(CLASSES)])
    for n, title in enumerate([*PAGES, "An article that this wiki lost"])
    if n != 5
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """The toy wiki with Wikidata's JSON dump beside its own."""
    folder = tmp_path_factory.mktemp("toy")
    write_dump(folder / "wikidata-20260101-all.json.bz2", [entity.as_line() for entity in DESCRIBED])
    corpus = build_toy_corpus(folder)
    yield corpus
    corpus.close()


@pytest.fixture(scope="module")
def store():
    return load_store(PREFIXES + "".join(entity.as_turtle() for entity in DESCRIBED))


def make_stage(corpus, gate, sparql=None, site=SITE, page_rows=3):
    source = WikidataSource(sparql, site, page_rows) if sparql else None
    return Seeds(corpus, gate, SPLITS, 1, source)


def list_seeds(stage):
    return [row for row in stage() if isinstance(row, Seed)]


@pytest.mark.parametrize("name", GATES)
def test_sparql_and_dump_give_the_same_seeds_in_the_same_order(corpus, store, name):
    gate = GATES[name]
    from_dump = list_seeds(make_stage(corpus, gate))
    with serve_sparql(store) as server:
        from_sparql = list_seeds(make_stage(corpus, gate, make_endpoint(server.url)))
    assert from_sparql == from_dump
    assert len(from_dump) >= 2
    assert {seed.qid for seed in from_dump} < {f"Q{entity.number}" for entity in DESCRIBED}


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_endpoint_changes_no_seed(corpus, store, fault, tmp_path):
    whole = list_seeds(make_stage(corpus, RARE))
    replies = open_replies(tmp_path)
    with serve_sparql(store, Answer(), FAULTS[fault], Answer(), FAULTS[fault]) as server:
        slow = {"silence": {"deadline": 1.5}, "slow drip": {"deadline": 2.0}}.get(fault, {})
        endpoint = make_endpoint(server.url, tries=3, reply_bytes=100_000, **slow)
        assert list_seeds(make_stage(corpus, RARE, Recorded(endpoint, replies))) == whole
        server.asked.clear()
        assert list_seeds(make_stage(corpus, RARE, Recorded(endpoint, replies))) == whole
        assert server.asked == []
    replies.close()


def test_the_fingerprint_covers_endpoint_and_site_and_not_how_it_is_asked(corpus):
    stages = [
        make_stage(corpus, RARE),
        make_stage(corpus, RARE, make_endpoint("http://a/")),
        make_stage(corpus, RARE, make_endpoint("http://b/")),
        make_stage(corpus, RARE, make_endpoint("http://b/"), site="https://en.wikipedia.org/"),
    ]
    assert len({stage.fingerprint() for stage in stages}) == 4
    again = make_stage(corpus, RARE, make_endpoint("http://b/", contact="other@example.org", pause=3.0), page_rows=9)
    assert again.fingerprint() == stages[2].fingerprint()


@pytest.fixture
def widened(monkeypatch):
    """A rule that a generated world has enough entities for."""
    for module in (graph_seeds, stage_seeds):
        monkeypatch.setattr(module, "MAX_SITELINKS", 99)
        monkeypatch.setattr(module, "MIN_STATEMENTS", 12)


def make_settings(*more):
    return ["seeds.rule=vsearcher", "seeds.require_image=false", *more]


def test_the_generated_world_gives_the_same_seeds_both_ways(demo, demo_corpus, tmp_path, widened):
    graph = load_store(make_turtle(demo.world))
    instances = graph.query("SELECT DISTINCT ?c WHERE { ?i <http://www.wikidata.org/prop/direct/P31> ?c }")
    classes = sorted(row["c"].value.rpartition("/")[2] for row in instances)
    settings = make_settings(f"corpus.world={demo.world}", "seeds.limit=0")
    with serve_sparql(graph) as server:
        asked = [f"seeds.classes={classes}", f"seeds.endpoint={server.url}"]
        asked += [
            "contact=x@example.org",
        ]
        seeds = [
            list_seeds(
                Assembly(
                    make_config(read_recipe("demo"), [*settings, *more]), Workspace(tmp_path), demo_corpus
                ).build_stage("seeds")
            )
            for more in ((), asked)
        ]
    assert seeds[0] == seeds[1]
    assert len(seeds[0]) >= 20
    assert server.most_in_flight == 1
    assert {request.headers["user-agent"].partition("/")[0] for request in server.asked} == {"synth"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["contact=x@example.org"], "seeds.classes is empty"),
        (["seeds.classes=['Q5']"], "contact is empty"),
    ],
)
def test_drawing_by_sparql_needs_a_class_and_a_contact(demo, demo_corpus, tmp_path, settings, words):
    config = make_config(
        read_recipe("demo"),
        make_settings(f"corpus.world={demo.world}", "seeds.endpoint=http://a/", *settings),
    )
    with pytest.raises(ConfigError, match=words):
        Assembly(config, Workspace(tmp_path), demo_corpus).build_stage("seeds")


@pytest.mark.parametrize(
    "setting",
    [
        "seeds.classes=['Q5 }']",
        "seeds.endpoint=file:///etc/passwd",
        "seeds.endpoint=https://example.org/sparql?key=secret",
        'contact="a\\nHost: b"',
    ],
)
def test_settings_that_could_not_stand_in_a_request_are_refused(setting):
    with pytest.raises(ConfigError, match=setting.partition("=")[0]):
        make_config(read_recipe("demo"), [setting])


def test_a_run_that_the_endpoint_stopped_goes_on_and_asks_only_what_is_missing(demo, tmp_path, widened, monkeypatch):
    monkeypatch.setattr(models, "PAGE_ROWS", 10)
    graph = load_store(make_turtle(demo.world))
    with serve_sparql(graph, *[Answer()] * 5, always=FAULTS["500"]) as server:
        settings = [
            f"corpus.world={demo.world}",
            "seeds.classes=['Q5', 'Q12280']",
            *(f"seeds.endpoint={server.url}", "contact=x@example.org"),
        ]
        config = make_config(read_recipe("demo"), make_settings(*settings))
        with pytest.raises(Unavailable, match="run again to continue"):
            run_recipe(config, tmp_path, "seeds", ())
        answered, server.always = server.queries[:5], None
        server.asked.clear()
        report = run_recipe(config, tmp_path, "seeds", ()).stages[-1]
    assert not set(answered) & set(server.queries)
    usage = Workspace(tmp_path).stage("seeds", report.key).read_manifest().usage
    assert (usage.calls, usage.cached_calls) == (len(server.queries), 5)
    assert report.rows_in == report.kept + sum(report.rejected.values())
    assert report.kept > 0
