"""A question in a world with some pages changed or added: how a defect is set up, and what the checks say of it.

- :class:`OverlayCorpus`: a corpus with edited pages, in memory, as if it had been built from them.
- A small BM25 ranking, independent of the search index that the checks use.
- :class:`Pool`: the questions that the pipeline accepts on small toy worlds, by both recipes.
- D24: one field of an accepted question or of its proof changed. A lowered demand makes another claim, not a false one,
  so demands are changed only where the proof's own counts contradict them; fields that verification does not cover
  (seed, split, attempts, difficulty, source of the picture) are left alone.
"""

import asyncio
import math
import re
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import BaseModel

from pipelines.checks.examination import Claim
from pipelines.checks.proofs import find_problems
from pipelines.checks.propositions import Claim as PageClaim
from pipelines.checks.propositions import ProseReader, list_claims
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.config.loading import make_config, read_recipe
from pipelines.corpus.dump import RawPage, Site, TitleRules, normalise_spaces, strip_qualifier
from pipelines.corpus.infobox import Infobox, read_infobox
from pipelines.corpus.linkgraph import LinkGraph
from pipelines.corpus.manifest import ANCHOR_PAGES, PASSAGE_WORDS
from pipelines.corpus.passages import PassageIndex, fill_index
from pipelines.corpus.scan import ARTICLE_PARTS, describe_article, render_article
from pipelines.corpus.store import Corpus
from pipelines.corpus.tables import FACTS
from pipelines.corpus.texts import split_passages
from pipelines.corpus.wikitext import find_links
from pipelines.errors import ConfigError
from pipelines.graph.proofs import make_question_id
from pipelines.graph.query import Indexes, locate_nodes
from pipelines.ids import digest_value
from pipelines.names import digest_aliases, fold_name
from pipelines.run.assembly import Assembly
from pipelines.run.chains import run_stages
from pipelines.run.corpora import ensure_corpus
from pipelines.run.progress import Reporter
from pipelines.run.runner import StageReport, select_stages
from pipelines.run.shards import read_parts
from pipelines.run.workspace import Workspace
from pipelines.services.prompting import RoleClient, load_prompt
from pipelines.toy.publishing import write_world
from pipelines.toy.reader import GrammarReader
from pipelines.toy.world import WorldConfig
from schemas.corpus import Fact, Page
from schemas.datasets import Grounding
from schemas.proofs import Branch, Constraint, Evidence, Hop, NearMiss, PathNode, Proof
from tests.planted.disguises import draw_sentence
from tests.planted.examining import examine
from tests.planted.words import Pair, Vocabulary, invent_person, invent_title, invent_word

_DESCRIBED = ARTICLE_PARTS.names[1:]
_NOT_OF_PAGES = ("title_hash", "bold")
_NOTHING_KNOWN: dict[str, Any] = {
    "qid": "", "sitelinks": -1, "statements": -1, "identifiers": -1, "classes": (), "image_free": False,
}  # fmt: skip
_STAMP = "2000-01-01T00:00:00Z"
KEPT_BASES = 16


@dataclass(frozen=True, slots=True)
class Reading:
    """A page as the builder reads it."""

    described: dict[str, Any]
    """Row of ``ARTICLE_PARTS`` by column."""
    links: tuple[tuple[str, str, int], ...]
    """Normalised title (there may be no such page), text, and start of each link to an article."""
    facts: tuple[tuple[Fact, str], ...]
    """Facts without node and target, each with the title that its value links to, or an empty one."""
    passages: tuple[str, ...]


class Base:
    """The pages of a corpus as the builder reads them, in memory; read once for all overlays."""

    def __init__(self, corpus: Corpus) -> None:
        manifest = corpus.manifest
        self.rules = TitleRules(Site(manifest.dbname, manifest.base_url, manifest.language, "first-letter", ()))
        self.words = PASSAGE_WORDS
        pages = [corpus.page(node) for node in corpus.article_nodes()]
        redirects = pq.read_table(corpus.folder / "redirects.parquet", columns=["title", "node"]).to_pylist()
        self.redirects: dict[int, list[str]] = defaultdict(list)
        for row in redirects:
            self.redirects[row["node"]].append(row["title"])
        self.nodes = {row["title"]: row["node"] for row in redirects} | {page.title: page.node for page in pages}
        self.last_id = max((page.page_id for page in pages), default=0)
        self.readings = tuple(
            self.read(RawPage(page.page_id, 0, page.title, None, page.revision, page.timestamp, corpus.text(page.node)))
            for page in pages
        )

    def read(self, page: RawPage) -> Reading:
        """Read a page as if it stood in the dump."""
        infobox = read_infobox(page.text)
        links = ((self._resolve(link.target), link) for link in find_links(page.text, self.rules.language))
        return Reading(
            described=dict(zip(_DESCRIBED, describe_article(page, infobox), strict=True)),
            links=tuple((title, link.anchor_text, link.start) for title, link in links if title),
            facts=tuple(self._list_facts(infobox)) if infobox else (),
            passages=tuple(split_passages(render_article(page.text, infobox), self.words)),
        )

    def _list_facts(self, infobox: Infobox) -> Iterator[tuple[Fact, str]]:
        for shown in sorted(infobox.fields, key=lambda shown: shown.start):
            for index, value in enumerate(shown.values):
                if value.text:
                    fact = Fact(
                        0, shown.key, shown.start, shown.end, index, len(shown.values), value.text, value.iso,
                        value.start, value.end, value.link_start, -1,
                    )  # fmt: skip
                    yield fact, self._resolve(value.link) if value.link is not None else ""

    def _resolve(self, link: str) -> str:
        target = self.rules.resolve(link)
        return target.title if target is not None and target.namespace == 0 else ""


read_base = lru_cache(maxsize=KEPT_BASES)(Base)


class OverlayCorpus(Corpus):
    """A corpus over another one; nodes of the base keep their numbers, added pages follow.

    In-degrees, graph, names from link texts, facts and search are computed from all pages.
    """

    def __init__(self, base: Corpus, edits: Mapping[int, str], added: Sequence[tuple[str, str]] = ()) -> None:
        """Read the changed pages.

        Args:
            base: a complete corpus of some thousand pages at most.
            edits: new wikitext by node.
            added: title and wikitext of new articles.

        Raises:
            ConfigError: a node does not exist, or a title is taken.
        """
        self.base, self._known = base, read_base(base)
        first = len(base.article_nodes())
        _check_pages(base, edits, added)
        counts = replace(base.manifest.counts, articles=first + len(added))
        digest = digest_value([base.digest, sorted(edits.items()), list(added)])
        super().__init__(base.folder, replace(base.manifest, counts=counts, digest=digest))
        self._texts = dict(edits) | {first + place: text for place, (_, text) in enumerate(added)}
        self._nodes = self._known.nodes | {title: first + place for place, (title, _) in enumerate(added)}
        self._readings = list(self._known.readings)
        for node, text in edits.items():
            page = base.page(node)
            raw = RawPage(page.page_id, 0, page.title, None, page.revision + 1, page.timestamp, text)
            self._readings[node] = self._known.read(raw)
        for number, (title, text) in enumerate(added, self._known.last_id + 1):
            self._readings.append(self._known.read(RawPage(number, 0, title, None, number, _STAMP, text)))

    def text(self, node: int) -> str:
        """Return an article's wikitext."""
        return self._texts[node] if node in self._texts else self.base.text(node)

    def find(self, title: str) -> int | None:
        """Return the node of an exact title, redirects followed."""
        return self._nodes.get(normalise_spaces(title))

    def aliases(self, node: int) -> tuple[str, ...]:
        """Return all names of an article, its title included, sorted."""
        return self._names[node]

    def nodes_of_type(self, type: str) -> NDArray[np.uint32]:
        """Return the nodes whose page has this type, ascending."""
        found = [node for node, reading in enumerate(self._readings) if reading.described["type"] == type]
        return np.array(found, dtype=np.uint32)

    def read_fact_tables(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the facts of all pages as one table."""
        yield self._fact_table.select(list(columns))

    def close(self) -> None:
        """Release the large parts; the base stays open."""
        super().close()
        for name in ("graph", "_fact_table"):
            self.__dict__.pop(name, None)
        self._page_of.cache_clear()
        self._facts_of.cache_clear()

    @cached_property
    def graph(self) -> LinkGraph:
        """The link graph of all pages."""
        edges: dict[tuple[int, int], int] = {}
        for node, reading in enumerate(self._readings):
            for title, _, start in reading.links:
                target = self._nodes.get(title, node)
                if target != node:
                    edges.setdefault((node, target), start)
        ends = np.array(list(edges), dtype=np.int64).reshape(-1, 2).T
        return make_graph(len(self._readings), ends[0], ends[1], np.array(list(edges.values()), dtype=np.int64))

    def _read_page(self, node: int) -> Page:
        in_degree = int(self.graph.in_degree[node])
        described = {name: value for name, value in self._readings[node].described.items() if name not in _NOT_OF_PAGES}
        if node >= len(self.base.article_nodes()):
            return Page(node=node, in_degree=in_degree, **described, **_NOTHING_KNOWN)
        before = self.base.page(node)
        image = before.image if before.image_free else described.pop("image") or before.image
        return replace(before, **described | {"in_degree": in_degree, "image": image})

    def _read_facts(self, node: int) -> tuple[Fact, ...]:
        return tuple(
            replace(fact, node=node, target=self._nodes.get(title, -1)) for fact, title in self._readings[node].facts
        )

    @cached_property
    def _fact_table(self) -> pa.Table:
        facts = [fact for node in self.article_nodes() for fact in self.facts(node)]
        columns = [pa.array([getattr(fact, field.name) for fact in facts], field.type) for field in FACTS]
        return pa.Table.from_arrays(columns, schema=FACTS)

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """Names of all articles by the rules of the builder."""
        used: dict[int, Counter[str]] = defaultdict(Counter)
        boxed: dict[int, set[str]] = defaultdict(set)
        for reading in self._readings:
            for title, text in {(title, text) for title, text, _ in reading.links}:
                used[self._nodes.get(title, -1)][text] += 1
            for fact, title in reading.facts:
                boxed[self._nodes.get(title, -1)].add(fact.text)
        least, names = ANCHOR_PAGES, []
        for node, reading in enumerate(self._readings):
            title = reading.described["title"]
            shown = {text for text, pages in used[node].items() if pages >= least} | boxed[node]
            longer = {strip_qualifier(title), *reading.described["bold"]}
            longer |= {text for text in shown if any(map(str.isalpha, text))}
            own = {title, *self._known.redirects.get(node, ())}
            names.append(tuple(sorted(own | {name for name in longer if len(name) > 1})))
        return names

    @cached_property
    def _passages(self) -> PassageIndex:
        rows = (
            (node, reading.described["title"], passage)
            for node, reading in enumerate(self._readings)
            for passage in reading.passages
        )
        return PassageIndex(fill_index(rows))


def make_graph(
    count: int, sources: NDArray[np.int64], targets: NDArray[np.int64], positions: NDArray[np.int64]
) -> LinkGraph:
    """Return a graph from its links, each pair once, in any order."""
    order = np.lexsort((targets, sources))
    turned = np.lexsort((sources, targets))
    in_degree = np.bincount(targets, minlength=count)
    return LinkGraph(
        offsets=np.concatenate([[0], np.cumsum(np.bincount(sources, minlength=count))]),
        targets=targets[order].astype(np.uint32),
        positions=positions[order].astype(np.uint32),
        in_offsets=np.concatenate([[0], np.cumsum(in_degree)]),
        in_sources=sources[turned].astype(np.uint32),
        in_degree=in_degree.astype(np.uint32),
    )


def _check_pages(base: Corpus, edits: Mapping[int, str], added: Sequence[tuple[str, str]]) -> None:
    count = len(base.article_nodes())
    unknown = [node for node in edits if not 0 <= node < count]
    taken = [title for title, _ in added if base.find(title) is not None]
    if unknown or taken or len({title for title, _ in added}) != len(added):
        raise ConfigError(
            f"overlay: edits of nodes {unknown} of {count}, added titles taken: {taken}; "
            "edits name existing nodes, and added titles are new and differ"
        )


def relocate(proof: Proof, overlay: Corpus) -> Proof:
    """Return a proof of the base for an overlay: digest, in-degrees, names, and spans of its evidence.

    Evidence that a changed page no longer has stays as it was; the checks must report it.
    """
    names = [name for node in proof.hidden for name in _name_node(overlay, node.title)]
    moved = {
        "corpus": overlay.digest,
        "nodes": tuple(_count_links(node, overlay) for node in proof.nodes),
        "hops": tuple(hop.model_copy(update={"evidence": _move(hop.evidence, overlay)}) for hop in proof.hops),
        "answer_evidence": _move(proof.answer_evidence, overlay),
        "corroboration": None if proof.corroboration is None else _move(proof.corroboration, overlay),
        "alias_digest": digest_aliases(names),
        "branches": tuple(_move_branch(branch, overlay) for branch in proof.branches),
    }
    return proof.model_copy(update=moved)


def _move_branch(branch: Branch, overlay: Corpus) -> Branch:
    quote = None if branch.quote is None else _move(branch.quote, overlay)
    moved = {"node": _count_links(branch.node, overlay), "evidence": _move(branch.evidence, overlay), "quote": quote}
    return branch.model_copy(update=moved)


def _count_links(node: PathNode, overlay: Corpus) -> PathNode:
    number = overlay.find(node.title)
    return node if number is None else node.model_copy(update={"in_degree": overlay.page(number).in_degree})


def _name_node(corpus: Corpus, title: str) -> tuple[str, ...]:
    number = corpus.find(title)
    return (title,) if number is None else (title, *corpus.aliases(number))


def _move(evidence: Evidence, corpus: Corpus) -> Evidence:
    """Return evidence with the span of the same field or sentence in the corpus's page."""
    number = corpus.find(evidence.title)
    if number is None or corpus.page(number).revision == evidence.revision:
        return evidence
    text = corpus.text(number)
    starts = [fact.start for fact in corpus.facts(number) if fact.key == evidence.key] if evidence.key else []
    start = next((start for start in starts if text.startswith(evidence.text, start)), text.find(evidence.text))
    if start < 0:
        return evidence
    shift = start - evidence.start
    return evidence.model_copy(
        update={
            "revision": corpus.page(number).revision,
            "start": start,
            "end": evidence.end + shift,
            "link_start": evidence.link_start + shift if evidence.link_start >= 0 else -1,
        }
    )


K1, B = 1.2, 0.75
TITLE_WEIGHT = 2
ARTICLES_A_RANK = 100
"""Articles of a corpus for each rank that is considered: a small corpus is searched less deep."""
CLEARLY = 3
"""How many times further down than the limit the page of a clean twin's answer must stand."""
_WORD = re.compile(r"\w+")
_COMMON = frozenset(
    """
    a an and are as at be but by did do does for from had has have he her his how in is it its of on or she that the
    their they this to was were what when where which who whom whose why will with
    """.split()
)
Bag = tuple[int, Counter[str]]
"""Node and words of a passage; words of the title count double."""


def rank_by_words(corpus: Corpus, query: str, node: int, text: str) -> int:
    """Return the BM25 rank of an article for a query, 1 for the first.

    Args:
        corpus: all other articles.
        query: any words.
        node: the ranked article.
        text: its wikitext, in place of the corpus's.
    """
    bags = [*(bag for bag in _list_bags(corpus) if bag[0] != node), *_cut_bags(node, corpus.page(node).title, text)]
    mean = sum(words.total() for _, words in bags) / len(bags)
    weights = {}
    for word in set(_split(query)) - _COMMON:
        pages = sum(word in words for _, words in bags)
        weights[word] = math.log(1 + (len(bags) - pages + 0.5) / (pages + 0.5))
    best: dict[int, float] = defaultdict(float)
    for other, words in bags:
        norm = K1 * (1 - B + B * words.total() / mean)
        found = ((weight, words[word]) for word, weight in weights.items())
        score = sum(weight * count * (K1 + 1) / (count + norm) for weight, count in found)
        best[other] = max(score, best[other])
    return 1 + sum(score > best[node] for score in best.values()) if best[node] > 0 else len(best)


def is_far(corpus: Corpus, query: str, node: int, text: str, rank: int) -> bool:
    """Say whether an article (``text`` in place of the corpus's) ranks far below ``rank``; 0 checks nothing."""
    limit = max(1, min(rank, len(corpus.article_nodes()) // ARTICLES_A_RANK))
    return not rank or rank_by_words(corpus, query, node, text) > limit * CLEARLY


@lru_cache(maxsize=KEPT_BASES)
def _list_bags(corpus: Corpus) -> tuple[Bag, ...]:
    return tuple(
        bag for node in corpus.article_nodes() for bag in _cut_bags(node, corpus.page(node).title, corpus.text(node))
    )


def _cut_bags(node: int, title: str, text: str) -> list[Bag]:
    head = _split(title) * TITLE_WEIGHT
    return [
        (node, Counter((*head, *_split(passage))))
        for passage in split_passages(render_article(text, read_infobox(text)))
    ]


def _split(text: str) -> list[str]:
    return [fold_name(word) for word in _WORD.findall(text.lower())]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """Size of a world, and seeds per recipe."""

    entities: int
    seeds: Mapping[str, int]
    passes: int = 1
    """Runs of the injection recipe, which accepts few: each draws other facts and chains."""


LARGE = PoolSize(450, {"paths": 200, "injection": 400}, passes=5)
SMALL = PoolSize(300, {"paths": 80, "injection": 170}, passes=2)
LAST = "groundings"
METHODS = ("paths", "injection")
SETTINGS = (
    "seeds.min_in_degree=1", "paths.per_seed=2", "rewrites.min_alone_first=2", "rewrites.min_alone=2",
    "groundings.min_answers=2", "releases.max_gold_share=1.0",
    "injections.rounds=[1, 2, 3]", "injections.weights=[0.4, 0.4, 0.2]",
    "questions.max_answer_share=0.5", "runtime.workers=1",
)  # fmt: skip
"""Small worlds have fewer entities and answers than the recipe demands; all else is as shipped."""
Reports = tuple[tuple[StageReport, ...], ...]
"""Funnel by pass."""


@dataclass(frozen=True, eq=False)
class Pool:
    """A small world and the questions that the pipeline accepts in it."""

    missing: float
    world: Path
    corpus: Corpus
    questions: tuple[Grounding, ...]
    """Of both recipes, the path recipe first."""
    reports: Mapping[str, Reports]
    """Funnels by method."""
    config: WorldConfig
    root: Path
    first: tuple[Grounding, ...]
    """Questions of the first pass of each recipe."""

    @cached_property
    def ground(self) -> Indexes:
        """The corpus with its indexes."""
        return Indexes(self.corpus)

    def assemble(self, *settings: str) -> Assembly:
        """Return a run over the pool's corpus with further settings."""
        config = make_config(read_recipe("demo"), [*_list_settings(self.world, self.config.seed), *settings])
        return Assembly(config, Workspace(self.root / "workspace"), self.corpus)

    def find_method(self, question: Grounding) -> str:
        """Return the recipe that made a question: only the path recipe leaves the answer node without a descriptor."""
        return METHODS[bool(question.proof.descriptors[-1].strip())]

    @cached_property
    def steady(self) -> tuple[Grounding, ...]:
        """Questions whose answer a text search is far from finding, by the bench's own ranking.

        A question near the limit is no clean twin: one page more or less may change its result.
        """
        return tuple(question for question in self.questions if self.is_hidden(question, question.text))

    def is_hidden(self, question: Grounding, text: str) -> bool:
        """Say whether a wording of a question is far from finding the page of its answer."""
        (number,) = locate_nodes(self.corpus, question.proof.nodes[-1:])
        rank = question.proof.thresholds.retrieval_rank
        return is_far(self.corpus, text, number, self.corpus.text(number), rank)


@contextmanager
def open_pools(seed: int, missing: tuple[float, ...], size: PoolSize = LARGE) -> Iterator[tuple[Pool, ...]]:
    """Give a pool for each missing rate; their files are deleted afterwards."""
    root = Path(tempfile.mkdtemp(prefix="synth-bench-"))
    pools: list[Pool] = []
    try:
        for number, rate in enumerate(missing):
            pools.append(make_pool(root / str(number), seed, rate, size))
        yield tuple(pools)
    finally:
        for pool in pools:
            pool.corpus.close()
        shutil.rmtree(root, ignore_errors=True)


def make_pool(root: Path, seed: int, missing: float, size: PoolSize = LARGE) -> Pool:
    """Generate a world under ``root``, run both recipes on it, and collect the accepted questions."""
    world, workspace = WorldConfig(entities=size.entities, seed=seed, missing=missing), Workspace(root / "workspace")
    folder = root / "world"
    if not folder.is_dir():
        write_world(folder, world)
    source = make_config(read_recipe("demo"), _list_settings(folder, seed)).corpus
    corpus, _ = ensure_corpus(source, workspace, Reporter(), 1)
    questions: list[Grounding] = []
    first: list[Grounding] = []
    reports: dict[str, Reports] = {}
    for method in METHODS:
        passes = []
        for number in range(size.passes if method == "injection" else 1):
            limits = (f"seeds.limit={size.seeds[method]}", f'method="{method}"', f"seed={seed + number}")
            config = make_config(read_recipe("demo"), [*_list_settings(folder, seed), *limits])
            passes.append(_run(Assembly(config, workspace, corpus)))
        first += passes[0][0]
        questions += {row.record_id: row for found, _ in passes for row in found}.values()
        reports[method] = tuple(funnel for _, funnel in passes)
    return Pool(missing, folder, corpus, tuple(questions), reports, world, root, tuple(first))


def _run(assembly: Assembly) -> tuple[list[Grounding], tuple[StageReport, ...]]:
    """Run a recipe; return its finished questions by record id, and its funnel."""
    chosen, rows = select_stages(assembly.plan_stages(), LAST, ()), assembly.config.runtime.shard_rows
    reports = tuple(run_stages(chosen, assembly.corpus_entry, rows, Reporter()))
    return sorted(read_parts(chosen[-1].folder, Grounding), key=lambda row: row.record_id), reports


def _list_settings(world: Path, seed: int) -> list[str]:
    """Return the settings of a run over a generated world."""
    return [f"corpus.world={world}", f"seed={seed}", *SETTINGS]


MAX_TOKENS = 6
MANY = 60
"""Pages that one plant may change."""
TRIES = 400
"""Clean questions tried for one pair."""


@dataclass(frozen=True, slots=True)
class Case:
    """A clean question with the pool it comes from."""

    pool: Pool
    question: Grounding
    numbers: tuple[int, ...]
    """Nodes of its path in the corpus."""

    @property
    def corpus(self) -> Corpus:
        """The corpus of the pool."""
        return self.pool.corpus

    @property
    def claim(self) -> Claim:
        """The question as it was accepted."""
        return Claim(self.question.text, self.question.answer, self.question.proof)

    def find_subject(self, hop: Hop) -> int:
        """Return the node on whose page a hop is stated."""
        return self.numbers[hop.index if hop.backward else hop.index - 1]

    def find_object(self, hop: Hop) -> int:
        """Return the node that a hop's relation leads to."""
        return self.numbers[hop.index - 1 if hop.backward else hop.index]


@dataclass(frozen=True, slots=True)
class Scene:
    """A claim, and the changes of the world around it."""

    claim: Claim
    edits: Mapping[int, str] = field(default_factory=dict)
    added: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Twins:
    """A clean scene, the same scene with a defect, and the codes that recognise it."""

    plant: str
    clean: Scene
    defective: Scene
    codes: tuple[str, ...]
    read: bool = False
    """Whether the evaluator reads the answer's page anew, as a run does: what cue words leave open is for it to say."""


def draw_case(pools: Sequence[Pool], rng: Random) -> Case:
    """Return a clean question of a random pool.

    Raises:
        ConfigError: no pool has a steady question.
    """
    steady = [pool for pool in pools if pool.steady]
    if not steady:
        raise ConfigError(
            f"bench planted: {len(pools)} worlds have no question that a text search is far from answering; "
            "take another seed or more pairs, which are planted in larger worlds"
        )
    pool = rng.choice(steady)
    question = rng.choice(pool.steady)
    return Case(pool, question, tuple(locate_nodes(pool.corpus, question.proof.nodes)))


def judge(pool: Pool, scene: Scene, read: bool = False) -> tuple[CheckResult, ...]:
    """Return all findings of the checks in a scene, and of a new reading of the answer's page; none when accepted."""
    with lay(pool, scene) as ground:
        claim = replace(scene.claim, proof=relocate(scene.claim.proof, ground.corpus))
        found = examine(ground, claim, MAX_TOKENS, audit=True)
        asked = next((each for each in list_claims(ground.corpus, claim.proof, claim.answer) if read), None)
        result = PASSED if asked is None else read_page(ground, asked, claim.proof)
        return found if result.passed else (*found, result)


def read_page(ground: Indexes, claim: PageClaim, proof: Proof) -> CheckResult:
    """Return what the grammar's reading of a page says of one claim."""
    reader = ProseReader(ground, RoleClient(GrammarReader(), load_prompt("read_page")))
    return asyncio.run(reader.check_claim(claim, proof.thresholds.agreement))[1]


@contextmanager
def lay(pool: Pool, scene: Scene) -> Iterator[Indexes]:
    """Give the indexes of a scene; cue words and answer shares, learnt from the whole wiki, are those of the base."""
    overlay = OverlayCorpus(pool.corpus, scene.edits, scene.added)
    ground = Indexes(overlay)
    ground.__dict__["cues"], ground.__dict__["shares"] = pool.ground.cues, pool.ground.shares
    try:
        yield ground
    finally:
        overlay.close()


def make_pair(pool: Pool, twins: Twins) -> Pair:
    """Judge both twins."""
    clean, defective = (judge(pool, scene, twins.read) for scene in (twins.clean, twins.defective))
    returned = tuple(result.code for result in defective)
    return Pair(twins.plant, pick_result(clean, ()), pick_result(defective, twins.codes), twins.codes, returned)


def pick_result(found: Sequence[CheckResult], codes: Sequence[str]) -> CheckResult:
    """Return a finding with a wanted code, else an UNKNOWN, else any; a pass without findings."""
    ranked = sorted(found, key=lambda result: (result.code not in codes, result.outcome != "UNKNOWN"))
    return ranked[0] if ranked else PASSED


def invent_name(corpus: Corpus, kind: str, words: Vocabulary, rng: Random) -> str:
    """Return a name that the wiki does not have."""
    while True:
        name = invent_person(words, rng) if kind == "person" else invent_title(words, rng).partition(" (")[0]
        if corpus.find(name) is None:
            return name
        name = f"{name} {invent_word(words, rng)}"


def find_facts(corpus: Corpus, node: int, key: str) -> tuple[Fact, ...]:
    """Return the values of a field of a page."""
    return tuple(fact for fact in corpus.facts(node) if fact.key == key)


def set_field(text: str, fact: Fact, value: str) -> str:
    """Return a page with the raw value of a fact's whole field replaced."""
    return text[: fact.field_start] + value + text[fact.field_end :]


def note_page(text: str) -> str:
    """Return a page with an HTML comment."""
    return f"{text}\n<!-- checked -->"


def edit_elsewhere(case: Case, sentence: str, rng: Random) -> dict[int, str]:
    """Return an edit of an article off the path: one more sentence."""
    node = rng.choice([node for node in case.corpus.article_nodes() if node not in case.numbers])
    return {node: add_sentence(case.corpus.text(node), sentence)}


def add_sentence(text: str, sentence: str) -> str:
    """Return a page with one more sentence, at the end of its first section of prose."""
    infobox = read_infobox(text)
    start = infobox.end if infobox else 0
    place = text.find("\n\n", start + 2)
    place = len(text) if place < 0 else place
    return f"{text[:place]} {sentence}{text[place:]}"


def copy_infobox(case: Case, node: int, name: str, changes: Mapping[str, str]) -> str:
    """Return the article of a new entity like ``node``: its infobox with raw values changed by key, and a lead."""
    corpus = case.corpus
    text = corpus.text(node)
    infobox = read_infobox(text)
    if infobox is None:
        raise AssertionError(f"{corpus.page(node).title} has no infobox; only nodes with facts are copied")
    box = text[infobox.start : infobox.end]
    for each in sorted(infobox.fields, key=lambda each: -each.start):
        if each.key in changes:
            box = box[: each.start - infobox.start] + changes[each.key] + box[each.end - infobox.start :]
    page = corpus.page(node)
    box = box.replace(page.title, name).replace(page.title.partition(" (")[0], name)
    noun = page.lead_type or page.type or "thing"
    return f"{box}\n'''{name}''' is {'an' if noun[0] in 'aeiou' else 'a'} {noun}."


UNVERIFIED = "unverified"
VERIFIED_FIELDS = ("record_id", "text", "answer", "proof")
RULES = (
    ("proof", "thresholds"),
    ("proof", "hub_in_degree"),
    ("proof", "shortcuts_checked"),
    ("proof", "page_readings"),
)
"""Demands, changed only by :func:`_list_demands`, and what a reader said, which only a reader can say again."""
UNORDERED = (("proof", "counts"),)
"""Tuples whose order means nothing."""
NOWHERE = Evidence(
    page_id=1, title="Nothing", revision=1, kind="infobox", key="nothing", start=0, end=1, text="n", link_start=0
)
FILLED: dict[str, Any] = {
    "unit": "m",
    "precision": "day",
    "constraints": (Constraint(node=1, relation="nothing", value="nothing"),),
    "redundant": (Constraint(node=1, relation="nothing", value="nothing"),),
    "near_misses": (NearMiss(node=1, page_id=1, title="Nothing", unknown=("type",), resolution="absent"),),
    "quote": NOWHERE,
    "branches": (
        Branch(
            host=1,
            relation="nothing",
            node=PathNode(page_id=1, title="Nothing", role="branch", type="thing", in_degree=0),
            named=True,
            evidence=NOWHERE,
        ),
    ),
}
"""New values of empty fields; any other gets a letter."""

Place = tuple[str | int, ...]


def plant_tampering(case: Case, words: Vocabulary, rng: Random) -> Pair | None:
    """D24: a number changed by one, a letter replaced, a part left out, repeated or moved.

    Both twins are verified after an edit of an article off the path.
    """
    aside = draw_sentence("asides", words, rng).format(value=rng.choice(words.words))
    with lay(case.pool, Scene(case.claim, edit_elsewhere(case, aside, rng))) as ground:
        question = case.question.model_copy(update={"proof": relocate(case.question.proof, ground.corpus)})
        place, changed = _draw_change(question, rng)
        clean, bad = (verify(ground, row) for row in (question, change_at(question, place, changed)))
    return Pair(f"{'.'.join(map(str, place))} = {changed!r}"[:160], clean, bad, (UNVERIFIED,))


def _draw_change(row: Grounding, rng: Random) -> tuple[Place, Any]:
    """Return one change; the field name is drawn first, since a proof has many spans and one digest."""
    groups: dict[tuple[str, ...], list[tuple[Place, Any]]] = {}
    for place, changed in list_changes(row, rng):
        groups.setdefault(tuple(part for part in place if isinstance(part, str)), []).append((place, changed))
    return rng.choice(groups[rng.choice(sorted(groups))])


def verify(ground: Indexes, row: Grounding) -> CheckResult:
    """FAIL when verification finds a problem in a question."""
    problems = find_problems(ground, Claim(row.text, row.answer, row.proof))
    sha256 = row.picture.sha256 if row.picture else ""
    if row.record_id != make_question_id(row.text, sha256, row.answer, row.proof):
        problems = [*problems, "id: the question, its picture, its answer or its path has changed"]
    return CheckResult("FAIL", UNVERIFIED, problems[0]) if problems else PASSED


def list_changes(row: Grounding, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield the place and a change of each field that verification covers."""
    for name in VERIFIED_FIELDS:
        yield from _list_changes(getattr(row, name), (name,), rng)
    yield from ((("proof", *place), changed) for place, changed in _list_demands(row.proof, rng))
    if row.picture is not None:
        yield ("picture", "sha256"), _change_text(row.picture.sha256, rng)


def _list_changes(value: Any, place: Place, rng: Random) -> Iterator[tuple[Place, Any]]:
    if place[:2] in RULES:
        return
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _list_changes(getattr(value, name), (*place, name), rng)
    elif value is None or value in ("", ()):
        yield place, _fill(place, rng)
    elif isinstance(value, tuple):
        yield from ((place, changed) for changed in _change_parts(value, place not in UNORDERED))
        for number, part in enumerate(value):
            yield from _list_changes(part, (*place, number), rng)
    elif isinstance(value, bool):
        yield place, not value
    elif isinstance(value, int):
        yield place, value + rng.choice((-1, 1))
    elif isinstance(value, str):
        yield place, _change_text(value, rng)


def _list_demands(proof: Proof, rng: Random) -> Iterator[tuple[Place, Any]]:
    """Yield demands that the proof's own counts contradict."""
    limits = proof.thresholds
    yield ("thresholds", "alone_first"), limits.alone_first + rng.choice((-1, 1))
    if len(proof.hops) > 1:
        yield ("thresholds", "alone"), limits.alone + rng.choice((-1, 1))
    if limits.answers:
        yield ("thresholds", "answers"), rng.choice((0, limits.answers - 1, limits.answers + 1))
    if proof.near_misses:
        yield ("thresholds", "near_misses"), 0
    yield ("thresholds", "answer_share"), 0.0


def _fill(place: Place, rng: Random) -> Any:
    name = place[-1]
    if name == "derivation":
        return rng.choice(("month", "year"))
    return FILLED.get(str(name), ("a",) if name in ("aliases", "unknown") else "a")


def _change_parts(parts: tuple[Any, ...], ordered: bool) -> Iterator[tuple[Any, ...]]:
    """Yield parts without the last one, with it twice, and reversed."""
    if parts:
        yield parts[:-1]
        yield (*parts, parts[-1])
    if ordered and len(set(parts)) > 1:
        yield tuple(reversed(parts))


def _change_text(text: str, rng: Random) -> str:
    """Return a text with one letter or digit replaced."""
    spots = [place for place, letter in enumerate(text) if letter.isalnum()] or [0]
    spot = rng.choice(spots)
    other = rng.choice([letter for letter in "abcdef0123456789" if letter != text[spot].casefold()])
    return text[:spot] + other + text[spot + 1 :]


def change_at(value: Any, place: Place, changed: Any) -> Any:
    """Return a record with the value at one place replaced, unvalidated as in a tampered file."""
    if not place:
        return changed
    first, rest = place[0], place[1:]
    if isinstance(first, int):
        return (*value[:first], change_at(value[first], rest, changed), *value[first + 1 :])
    return value.model_copy(update={first: change_at(getattr(value, first), rest, changed)})
