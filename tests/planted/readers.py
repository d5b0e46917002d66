"""How well texts by others are read: D25 to D33 and leaks, in wordings whose authors never saw the checks.

``python -m tests.planted.readers`` measures by the recorded replies of an evaluator; ``--url http://127.0.0.1:8765/v1``
asks a server for what is not recorded, and ``--record`` keeps its replies. Files of ``wordings/`` say who wrote them;
those of authors who are held out were opened by nobody who worked on the checks. A wording counts as found when the
read-back or a check of texts refuses it; UNKNOWN refuses.
"""

import argparse
import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rich.table import Table

from pipelines.checks.examination import list_text_checks
from pipelines.checks.leakage import check_answer, check_demonyms, check_names
from pipelines.checks.propositions import Claim, ProseReader
from pipelines.checks.readings import Evaluator
from pipelines.checks.verdicts import PASSED, CheckResult, run_checks
from pipelines.cli.console import emit_json, emit_table, to_json
from pipelines.config.settings import ModelConfig
from pipelines.corpus.store import Corpus, Fact
from pipelines.errors import CorruptInput, RecordFailed
from pipelines.graph.answers import derive_answer, type_answer
from pipelines.graph.facts import read_attributes, read_relations
from pipelines.graph.proofs import cite_fact, cite_sentence, flatten_names, list_names, make_node
from pipelines.graph.prose import make_clause
from pipelines.graph.query import TYPE, Indexes, locate_nodes
from pipelines.ids import digest_value
from pipelines.names import digest_aliases
from pipelines.services.clients.chat import OpenAIChat
from pipelines.services.prompting import RoleClient, ask_model, load_prompt
from pipelines.services.protocols import ChatModel, ChatReply, ChatRequest
from schemas.proofs import UNCOUNTED, Answer, Constraint, Hop, PathNode, Proof, Role
from schemas.tasks import HiddenThing, ScreeningReply, ScreenQuestionInputs
from tests.planted.shares import Proportion, make_share
from tests.toy import box, build_toy_corpus

FOLDER = Path(__file__).with_name("wordings")
REPLIES = FOLDER / "replies.json"
HARMLESS = "harmless"
CLEAN = (HARMLESS, "agreeing prose", "no leak")
DEMANDS = (
    dict.fromkeys(CLEAN, 0.05)
    | dict.fromkeys(("D25", "D26", "D27", "D28", "D29", "D30", "D31"), 0.95)
    | {"D32": 0.8, "D33": 0.8, "answer": 0.9, "name": 0.8}
)
"""Largest share of texts without a defect that is refused, and smallest of those with one."""
UNRECORDED = "no reply is recorded"
_LINK = re.compile(r"\[\[([^\[\]|]+)")


@dataclass(frozen=True, slots=True)
class Author:
    """What one author wrote; the lines are as ``wordings/README.md`` says."""

    name: str
    held_out: bool
    cases: Mapping[str, dict[str, Any]]
    wordings: Sequence[dict[str, Any]]
    prose: Sequence[dict[str, Any]]
    leaks: Sequence[dict[str, Any]]


def load_authors(folder: Path = FOLDER) -> list[Author]:
    """Return the authors by name.

    Raises:
        CorruptInput: if a line is no JSON or of no known kind.
    """
    authors = []
    for path in sorted(folder.glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for line in lines:
            by_kind[line["what"]].append(line)
        if strange := set(by_kind) - {"author", "case", "wording", "prose", "leak"}:
            raise CorruptInput(f"{path}: lines of kind {sorted(strange)}")
        (head,) = by_kind["author"]
        cases = {case["case"]: case for case in by_kind["case"]}
        authors.append(
            Author(head["name"], head["held_out"], cases, by_kind["wording"], by_kind["prose"], by_kind["leak"])
        )
    return authors


def build_wiki(folder: Path, author: Author) -> Corpus:
    """Build the corpus that holds the pages of an author's cases and prose."""
    pages: dict[str, str] = {}
    linked: set[str] = set()
    for case in author.cases.values():
        for node in case["nodes"]:
            fields = [f"{key} = {value}" for key, value in node["fields"].items()]
            lead = f"'''{node['title']}''' is a {node['type']}. {node.get('prose', '')}".strip()
            pages[node["title"]] = box(node["type"], lead, *fields)
            linked |= {name for text in (*fields, lead) for name in _LINK.findall(text)}
    for line in author.prose:
        lead = f"'''{line['title']}''' is a {line['type']}. {line['sentence']}"
        pages[line["title"]] = box(line["type"], lead, f"{line['field']} = {line['value']}")
        linked |= set(_LINK.findall(line["value"] + line["sentence"]))
    for name in sorted(linked):
        pages.setdefault(name, box("article", f"'''{name}''' is an article."))
    return build_toy_corpus(folder, pages, {})


def prove_case(corpus: Corpus, case: Mapping[str, Any]) -> tuple[Proof, Answer]:
    """Return the proof of a case's query, uncounted, and its answer.

    Raises:
        CorruptInput: if the pages do not hold the query.
    """
    numbers = [_find(corpus, node["title"]) for node in case["nodes"]]
    roles: list[Role] = ["anchor", *["bridge"] * (len(numbers) - 2), "answer"]  # type: ignore[list-item]
    nodes = tuple(make_node(corpus, number, role) for number, role in zip(numbers, roles, strict=True))
    hops = tuple(_prove_hop(corpus, case, index, numbers, nodes) for index in range(1, len(numbers)))
    key = case["asked"]
    found = [each for each in read_attributes(corpus, numbers[-1]) if each.fact.key == key]
    if not found:
        raise CorruptInput(f"case {case['case']}: {case['nodes'][-1]['title']} has no typed {key}")
    fact = found[0].fact
    whole = type_answer(fact.text, fact.iso, key)
    derivation = "" if whole is None or whole.precision == case["form"] or whole.type != "date" else case["form"]
    answer = None if whole is None else derive_answer(whole, derivation)
    if answer is None:
        raise CorruptInput(f"case {case['case']}: {fact.text} has no {case['form']}")
    proof = Proof(
        corpus=corpus.digest,
        snapshot=corpus.snapshot,
        nodes=nodes,
        hops=hops,
        answer_relation=key,
        answer_evidence=cite_fact(corpus, fact),
        constraints=tuple(
            Constraint(node=place, relation=TYPE, value=corpus.page(number).type)
            for place, number in enumerate(numbers)
            if place
        ),
        counts=(),
        alias_digest=digest_aliases(flatten_names(list_names(corpus, nodes))),
        thresholds=UNCOUNTED,
        derivation=derivation,
    )
    return proof, answer


def _find(corpus: Corpus, title: str) -> int:
    number = corpus.find(title)
    if number is None:
        raise CorruptInput(f"no page {title!r}")
    return number


def _prove_hop(
    corpus: Corpus, case: Mapping[str, Any], index: int, numbers: Sequence[int], nodes: Sequence[PathNode]
) -> Hop:
    said = case["hops"][index - 1]
    source, target = (index, index - 1) if said["backward"] else (index - 1, index)
    ends = {"subject_id": nodes[source].page_id, "object_id": nodes[target].page_id}
    if not said.get("sentence"):
        fact = next(
            (f for f in _list_facts(corpus, numbers[source]) if (f.key, f.target) == (said["field"], numbers[target])),
            None,
        )
        if fact is None:
            raise CorruptInput(f"case {case['case']}: no {said['field']} leads from node {source} to {target}")
        return Hop(index=index, relation=fact.key, clause="", evidence=cite_fact(corpus, fact),
                   backward=said["backward"], **ends)  # fmt: skip
    page, names = corpus.text(numbers[source]), flatten_names(list_names(corpus, nodes))
    for link in corpus.links(numbers[source]):
        clause = make_clause(page, link, names) if link.target == nodes[target].title else None
        if clause is not None:
            evidence = cite_sentence(corpus, numbers[source], clause.start, clause.end, link.start)
            return Hop(index=index, relation="mentions", clause=clause.text, evidence=evidence, **ends)
    raise CorruptInput(f"case {case['case']}: no sentence leads from node {source} to {target}")


def _list_facts(corpus: Corpus, number: int) -> list[Fact]:
    return list(read_relations(corpus, number))


@dataclass
class Recorded:
    """Replies by digest of the messages; what is not there is asked of ``model``, or fails without one."""

    replies: dict[str, str]
    model: ChatModel | None = None
    asked: int = 0
    name: str = "recorded"
    identity: str = "recorded:1"
    reads_inputs: bool = False

    async def chat(self, request: ChatRequest) -> ChatReply:
        key = digest_value([[message.role, message.text] for message in request.messages])
        if key not in self.replies and self.model is not None:
            self.asked += 1
            self.replies[key] = (await self.model.chat(request)).text
        if key not in self.replies:
            raise RecordFailed("unread", UNRECORDED)
        return ChatReply(self.replies[key], 0, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """One wording, and what came of it."""

    author: str
    held_out: bool
    defect: str
    """Empty for a wording without one."""
    text: str
    reading: CheckResult
    checks: CheckResult
    note: str = ""

    @property
    def answered(self) -> bool:
        """Whether there was a reply about it."""
        return UNRECORDED not in self.reading.detail

    @property
    def refused(self) -> bool:
        """Whether the read-back or a check of texts refused it."""
        return not (self.reading.passed and self.checks.passed)


def make_evaluator(corpus: Corpus, model: Recorded) -> Evaluator:
    """Return an evaluator whose replies are recorded."""
    return Evaluator(
        Indexes(corpus), *(RoleClient(model, load_prompt(name)) for name in ("read_question", "screen_question"))
    )


async def read_wordings(
    corpus: Corpus, evaluator: Evaluator, author: Author, lines: Sequence[dict[str, Any]]
) -> list[Found]:
    """Read wordings of one author back."""
    proofs = {name: prove_case(corpus, case) for name, case in author.cases.items()}

    async def read(line: dict[str, Any]) -> Found:
        proof, answer = proofs[line["case"]]
        _, result = await evaluator.check(line["text"], proof, answer)
        numbers = locate_nodes(corpus, proof.nodes)
        refused = run_checks(list_text_checks(evaluator.ground, numbers, line["text"], answer, proof))
        return Found(
            author.name, author.held_out, line["defect"], line["text"], result, refused[0] if refused else PASSED,
            line.get("note", ""),
        )  # fmt: skip

    return list(await asyncio.gather(*map(read, lines)))


async def read_leaks(evaluator: Evaluator, author: Author, lines: Sequence[dict[str, Any]]) -> list[Found]:
    """Let the evaluator look for what texts give away; a leak's defect is ``answer`` or ``name``."""

    async def read(line: dict[str, Any]) -> Found:
        kind: Literal["name", "answer"] = line["what_hidden"]
        answer = (type_answer(line["hidden"], "", "") if kind == "answer" else None) or _name_answer(line["hidden"])
        hidden = (HiddenThing(id="h1", kind=kind, text=line["hidden"]),)
        inputs = ScreenQuestionInputs(text=line["text"], hidden=hidden)
        try:
            reply = await ask_model(evaluator.screening, inputs, ScreeningReply)
            result = CheckResult("FAIL", "given-away", str(reply.leaks)) if reply.leaks else PASSED
        except RecordFailed as error:
            result = CheckResult("UNKNOWN", "unread", str(error))
        checks: list[Any] = [partial(check_answer, line["text"], answer)]
        if kind == "name":
            names = ((line["hidden"],),)
            checks = [partial(check_names, line["text"], names), partial(check_demonyms, line["text"], names)]
        refused = run_checks(checks)
        found = refused[0] if refused else PASSED
        return Found(author.name, author.held_out, kind if line["leaks"] else "", line["text"], result, found, kind)

    return list(await asyncio.gather(*map(read, lines)))


async def read_prose(reader: ProseReader, author: Author) -> list[Found]:
    """Let the evaluator read pages for another value than the infobox's (D32), or a second one (D33)."""
    corpus = reader.ground.corpus

    async def read(line: dict[str, Any]) -> Found:
        node = _find(corpus, line["title"])
        facts = [fact for fact in corpus.facts(node) if fact.key == line["field"]]
        value: Answer | int | None = facts[0].target if facts and facts[0].target >= 0 else None
        if value is None and facts:
            value = type_answer(facts[0].text, facts[0].iso, line["field"])
        if value is None:
            raise CorruptInput(f"{line['pair']}: {line['field']} = {line['value']} cannot be typed")
        _, result = await reader.check_claim(Claim(node, line["field"], value), "uncontradicted")
        return Found(author.name, author.held_out, line["defect"], line["sentence"], result, PASSED)

    return list(await asyncio.gather(*map(read, author.prose)))


def _name_answer(text: str) -> Answer:
    return Answer(type="name", value=text, precision="", unit="", surface=text, aliases=(), key=text.casefold())


@dataclass(frozen=True, slots=True)
class Row:
    """One defect, of one author or of all that are held out."""

    author: str
    defect: str
    texts: int
    refused: Proportion
    by_reading: float
    by_checks: float


def tabulate(found: Sequence[Found], clean: str) -> Iterator[Row]:
    """Yield the rows: each author's, then those of all open and of all held-out authors."""
    groups: dict[tuple[str, str], list[Found]] = defaultdict(list)
    for each in found:
        for author in (each.author, "held out" if each.held_out else "open"):
            groups[author, each.defect or clean].append(each)
    for (author, defect), members in sorted(groups.items()):
        yield Row(
            author,
            defect,
            len(members),
            make_share(sum(each.refused for each in members), len(members)),
            sum(not each.reading.passed for each in members) / len(members),
            sum(not each.checks.passed for each in members) / len(members),
        )


def render(rows: Sequence[Row]) -> Table:
    """Return the rows as a table."""
    table = Table(title="Wordings by others: share refused, and by what")
    for heading in ("author", "defect", "texts", "refused", "95%", "by reading", "by checks"):
        table.add_column(heading, justify="left" if heading in ("author", "defect") else "right")
    for row in rows:
        share = row.refused
        table.add_row(
            row.author, row.defect, str(row.texts), f"{share.share:.3f}", f"{share.low:.3f}-{share.high:.3f}",
            f"{row.by_reading:.3f}", f"{row.by_checks:.3f}",
        )  # fmt: skip
    return table


async def measure(model: Recorded, authors: Sequence[Author], most: int = 0) -> list[Row]:
    """Measure the wordings of authors, ``most`` of each kind; what has no reply is left out."""
    texts: list[Found] = []
    leaks: list[Found] = []
    prose: list[Found] = []
    # A wiki an author: the relations that a reader is offered do not change with what others wrote.
    for author in authors:
        with TemporaryDirectory() as folder:
            corpus = build_wiki(Path(folder), author)
            evaluator = make_evaluator(corpus, model)
            texts += await read_wordings(corpus, evaluator, author, author.wordings[: most or None])
            leaks += await read_leaks(evaluator, author, author.leaks[: most or None])
            reader = ProseReader(evaluator.ground, RoleClient(model, load_prompt("read_page")))
            prose += await read_prose(reader, replace(author, prose=author.prose[: most or None]))
    rows = []
    for found, clean in ((texts, HARMLESS), (prose, "agreeing prose"), (leaks, "no leak")):
        rows += tabulate([each for each in found if each.answered], clean)
    return rows


def list_unmet(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of held-out authors together that do not meet what is demanded of them.

    Raises:
        SystemExit: there is no such row, so nothing was measured.
    """
    if not any(row.author == "held out" for row in rows):
        raise SystemExit("no reply about a line of an author who is held out: name a server by --url")
    unmet = []
    for row in rows:
        least = DEMANDS.get(row.defect)
        if row.author == "held out" and least is not None:
            share = row.refused.share
            unmet += [row] if (share > least if row.defect in CLEAN else share < least) else []
    return unmet


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit with 1 if a demand on the held-out authors is not met."""
    parser = argparse.ArgumentParser(description="Read wordings by others back, and count what is refused.")
    parser.add_argument("--url", default="", help="OpenAI-compatible server to ask what is not recorded")
    parser.add_argument("--model", default="mailbox", help="its model")
    parser.add_argument("--record", action="store_true", help="keep the replies")
    parser.add_argument("--author", default="", help="only this one's lines")
    parser.add_argument("--most", type=int, default=0, help="lines of each kind and author")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args(arguments)
    settings = ModelConfig(name=given.model, base_url=given.url, timeout=3000.0, replies="json")
    recorded = json.loads(REPLIES.read_text("utf-8")) if REPLIES.exists() else {}
    model = Recorded(recorded, OpenAIChat(settings, patience=3000.0) if given.url else None)
    authors = [author for author in load_authors() if given.author in ("", author.name)]
    if not authors:
        raise SystemExit(f"no wordings in {FOLDER}")
    rows = asyncio.run(measure(model, authors, given.most))
    if given.record:
        REPLIES.write_text(json.dumps(dict(sorted(model.replies.items())), ensure_ascii=False, indent=0), "utf-8")
    emit_json(to_json(rows)) if given.json else emit_table(render(rows))
    raise SystemExit(1 if list_unmet(rows) else 0)


if __name__ == "__main__":
    main()
