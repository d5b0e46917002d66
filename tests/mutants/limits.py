"""Questions and values at a limit, and just beyond it."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from pipelines.checks import (
    agreement,
    answers,
    descriptors,
    leakage,
    pictures,
    shortcuts,
    uniqueness,
    verdicts,
)
from pipelines.checks.descriptors import offer_facts
from pipelines.checks.shortcuts import rank_page
from pipelines.checks.verdicts import PASSED, CheckResult
from pipelines.corpus.store import Corpus
from pipelines.graph.facts import parse_period, read_attributes
from pipelines.graph.proofs import make_query
from pipelines.graph.query import Indexes, count_alone, count_anchor_answers, locate_nodes
from schemas.proofs import Thresholds
from schemas.tasks import Descriptor, FactView
from tests.mutants.corpora import SCENES, Corpora, Judge, examine_pair, keep, limit
from tests.pipelines.checks.planted_alternatives import draw
from tests.pipelines.painters import add_pages, ask_back, born, paint
from tests.planted import examining
from tests.planted.scenes import Case, Scene, Twins, lay, pick_result, relocate
from tests.planted.words import Pair

FAR = 10_000


def list_limit_sets(corpora: Corpora) -> dict[str, Judge]:
    limits: dict[str, Callable[[Case], Twins | None]] = {
        "alone at its threshold": _limit_alone,
        "answers at their threshold": _limit_answers,
    }
    return {
        **{name: keep(corpora, plant) for name, plant in limits.items()},
        "near misses at their cap": partial(_judge_near_misses, corpora.painters),
        "words at their limit": partial(_judge_words, corpora),
        "share at its limit": partial(_judge_share, corpora),
        "years at the ends of a decade": partial(_judge_periods, corpora.painters),
        "a mention that may state it": partial(_judge_unclear, corpora.painters),
        "steps at their limit": partial(_judge_steps, corpora.toy),
        "a constraint left out of a count": partial(_judge_uncounted, corpora),
        "an answer that is a bridge": partial(_judge_bridge, corpora),
        "a declared fact alone": _judge_fact,
        "sides at their limit": _judge_sides,
        "a node without names": _judge_nameless,
        "a short name in the plural": _judge_plural,
        "a page further down than a small corpus is searched": partial(_judge_rank, corpora),
        "another answer that fits": partial(_judge_alternatives, corpora),
    }


def _limit_alone(case: Case) -> Twins | None:
    """As many entities fit the first descriptor as are demanded, and one fewer."""
    query = make_query(case.corpus, case.question.proof)
    alone = count_alone(case.pool.ground, query, 1, FAR)
    clean, bad = (limit(case.claim, alone_first=number) for number in (alone, alone + 1))
    return examine_pair(case, bad, "stands-alone", clean=clean)


def _limit_answers(case: Case) -> Twins | None:
    proof = case.question.proof
    query = make_query(case.corpus, proof)
    _, answers = count_anchor_answers(case.pool.ground, query, proof.nodes[0].type, FAR)
    clean, bad = (limit(case.claim, answers=number) for number in (answers, answers + 1))
    return examine_pair(case, bad, "picture-not-needed", clean=clean)


def _judge_near_misses(painters: Corpus) -> list[Pair]:
    """As many painters may have been born in the period as are looked up, and one more; no article says so."""
    pairs = []
    for names in (("Vera Wick", "Ida Holm"), ("Vera Wick", "Ida Holm", "Una Pell")):
        pages = {
            name.replace(" ", "_"): paint(name, "birth_place = [[Ostrel]]", prose="She painted.") for name in names
        }
        ground = Indexes(add_pages(painters, **pages))
        query = ask_back(ground.corpus)
        results = (
            uniqueness.check_near_misses(uniqueness.find_near_misses(ground, query, 1, cap))
            for cap in (len(names), len(names) - 1)
        )
        pairs.append(Pair(f"{len(names)} near misses", *results, ("too-many-near-misses",)))
    return pairs


def _judge_alternatives(corpora: Corpora) -> list[Pair]:
    """An answer that nothing supports, and the same one where the answer's field lists it, too."""
    found = []
    for case, planted in islice(draw(corpora.pool, "list"), SCENES):
        results = []
        for scene in (Scene(case.claim), planted.scene):
            with lay(case.pool, scene) as ground:
                proof = relocate(case.claim.proof, ground.corpus)
                results.append(agreement.check_alternative(ground, proof, case.question.answer, planted.given))
        found.append(Pair(planted.given, *results, ("alternative-answer",)))
    return found


def _judge_words(corpora: Corpora) -> list[Pair]:
    """An answer of as many words as are allowed, and of one more."""
    found = []
    for case in corpora.cases[:SCENES]:
        words = len(case.question.answer.surface.split())
        results = [examining.examine(case.pool.ground, case.claim, most, audit=True) for most in (words, words - 1)]
        codes = ("answer-too-long",)
        found.append(Pair(case.claim.answer.surface, *(pick_result(each, codes) for each in results), codes))
    return found


def _judge_share(corpora: Corpora) -> list[Pair]:
    """An answer that as many other subjects have as are allowed, and more than are allowed."""
    shares, found = corpora.pool.ground.shares, []
    for node in corpora.pool.corpus.article_nodes():
        for attribute in read_attributes(corpora.pool.corpus, node):
            share, observed = shares.share(attribute.fact.key, attribute.answer.key)
            others = round(share * observed) - 1
            if observed >= 20 and others > 0 and attribute.answer.type != "number":
                prior = others / (observed - 1)
                results = [
                    shortcuts.check_guessable(corpora.pool.ground, attribute.fact.key, attribute.answer, most)
                    for most in (prior, prior * 0.99)
                ]
                found.append(Pair(attribute.fact.text, *results, ("guessable-answer",)))
        if len(found) >= SCENES:
            break
    return found


def _judge_periods(painters: Corpus) -> list[Pair]:
    """A twin born in the last year of the period, or the first, and one born a year outside it."""
    ends = (("1870s", 1870, 1869), ("1870s", 1879, 1880), ("19th century", 1801, 1800), ("19th century", 1900, 1901))
    fitting = [_fit_twins(painters, period, inside, outside) for period, inside, outside in ends]
    said = [_say_period(painters, year) for year in (1869, 1870, 1900, 1901)]
    return [*fitting, *said]


def _fit_twins(painters: Corpus, period: str, inside: int, outside: int) -> Pair:
    found = []
    for year in (outside, inside):
        corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", "birth_place = [[Lumby]]", born(year)))
        # Of the painters from Lumby, Ben Corr (1875) alone fits.
        query = ask_back(corpus, "Lumby", ("type", "painter"), ("birth_date", period))
        found.append(uniqueness.check_fit(uniqueness.count_fit(Indexes(corpus), query, 1, 1), 1))
    return Pair(f"{inside} is in the {period}, {outside} is not", found[0], found[1], ("not-unique",))


def _say_period(painters: Corpus, year: int) -> Pair:
    """What is offered of a date must hold it."""
    corpus = add_pages(painters, Vera_Wick=paint("Vera Wick", born(year)))
    periods = [parse_period(fact.text) for fact in offer_facts(corpus, corpus.find("Vera Wick"), 6)]
    held = [first <= year <= last for first, last in filter(None, periods)]
    wrong = CheckResult("FAIL", "period", f"{year}: {periods}")
    return Pair(str(year), PASSED if all(held) and held else wrong, wrong, ("period",))


def _judge_unclear(painters: Corpus) -> list[Pair]:
    """Only an article that says nothing of what its infobox leaves open refutes a painter who may fit too."""
    pairs = []
    for field, silent, said, outcome in (
        (born(1874), "She painted.", "She painted [[Ostrel]].", "UNKNOWN"),
        (born(1874), "She painted.", "She was born in [[Ostrel]].", "FAIL"),
        ("birth_place = [[Ostrel]]", "She painted.", "She came in 1874.", "UNKNOWN"),
        ("birth_place = [[Ostrel]]", "She painted.", "She was born in 1874.", "FAIL"),
    ):
        found = []
        for prose in (silent, said):
            ground = Indexes(add_pages(painters, Vera_Wick=paint("Vera Wick", field, prose=prose)))
            numbers = [ground.corpus.find("Ostrel"), ground.corpus.find("Ada Brill")]
            limits = Thresholds(alone_first=1, alone=1, answers=0, near_misses=5)
            checks = examining.list_uniqueness_checks(ground, ask_back(ground.corpus), numbers, limits)
            found.append(pick_result(verdicts.run_checks(checks), ()))
        pairs.append(Pair(said, *found, ("near-miss",) if found[1].outcome == outcome else ()))
    return pairs


def _judge_steps(toy: Corpus) -> list[Pair]:
    """A way that is one step shorter is let pass, one that is two steps shorter is not."""
    ways = (("Kelm Bridge", "Mira Tolland", "Ostrel", "Valdonia"), ("Kelm Bridge", "Mira Tolland", "Ostrel", "Lumby"))
    near = (("Ines Farrow", "Marn", "Valdonia"), ways[1])
    return [
        Pair(str(bad), *(_measure_way(toy, titles) for titles in (clean, bad)), ("shorter-path",))
        for clean, bad in (ways, near)
    ]


def _measure_way(toy: Corpus, titles: Sequence[str]) -> CheckResult:
    return shortcuts.check_path_length(toy, [toy.find(title) for title in titles], hub_in_degree=100)


def _judge_rank(corpora: Corpora) -> list[Pair]:
    """A question whose page is among the ten first, in a corpus too small for so many; and one that names its page."""
    corpus, found = corpora.pool.corpus, []
    for row in corpora.pool.questions:
        (number,) = locate_nodes(corpus, row.proof.nodes[-1:])
        texts = (row.text, row.proof.nodes[-1].title)
        if rank_page(corpus, texts[0], number, 10) and rank_page(corpus, texts[1], number, 1):
            results = (shortcuts.check_retrieval(corpus, text, number, 10) for text in texts)
            found.append(Pair(row.text, *results, ("one-retrieval",)))
    return found


def _judge_sides() -> list[Pair]:
    small = ("picture-too-small",)
    return [
        Pair("511", pictures.check_picture(512, 600, "CC0", 512), pictures.check_picture(511, 600, "CC0", 512), small),
        Pair(
            "600x511", pictures.check_picture(600, 512, "CC0", 512), pictures.check_picture(600, 511, "CC0", 512), small
        ),
    ]


def _judge_nameless() -> list[Pair]:
    told = "the bridge in the image"
    clean = leakage.check_names(told, (("Kelm",), ("Mira Tolland",)))
    bad = [leakage.check_names(told, names) for names in ((("Kelm",), ()), ((), ("Kelm",)), ())]
    return [Pair("no name", clean, result, ("no-names",)) for result in bad]


def _judge_plural() -> list[Pair]:
    names = (("Kelm Bridge",), ("Mira Tolland",))
    clean, bad = (leakage.check_names(f"the bridge of the {family}", names) for family in ("Marns", "Kelms"))
    return [Pair("Kelms", clean, bad, ("alias-leak",))]


def _judge_uncounted(corpora: Corpora) -> list[Pair]:
    """A descriptor with the constraints that it amounts to, and without any."""
    corpus, found = corpora.pool.corpus, []
    for case in corpora.cases:
        proof = case.claim.proof
        for hop, text in zip(proof.hops, proof.descriptors, strict=False):
            said = [constraint for constraint in proof.constraints if constraint.node == hop.index]
            if text and said:
                number = case.numbers[hop.index]
                results = (descriptors.check_counted(corpus, number, each, text, hop.clause) for each in (said, []))
                found.append(Pair(text, *results, ("no-descriptor",)))
    return found[:SCENES]


def _judge_bridge(corpora: Corpora) -> list[Pair]:
    found = []
    for case in corpora.cases[:SCENES]:
        answer, titles = case.claim.answer, [node.title for node in case.claim.proof.nodes]
        results = (answers.check_not_bridge(answer, each) for each in (titles, [*titles, answer.surface]))
        found.append(Pair(answer.surface, *results, ("answer-is-bridge",)))
    return found


def _judge_fact() -> list[Pair]:
    """A descriptor that says its declared fact, and one that does not."""
    fact = FactView(relation="movement", text="Tonalism")
    texts = ("the painter of Tonalism from [subject]", "the painter of [subject]")
    results = (descriptors.check_facts(Descriptor(text=text, facts=(fact,))) for text in texts)
    return [Pair(texts[1], *results, ("no-descriptor",))]
