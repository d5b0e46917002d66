"""Defects of the answer and of the whole question: wrong gold, facts that change, what one search finds."""

from dataclasses import replace
from random import Random

from pipelines.bench.ranking import is_far, rank_by_words
from pipelines.bench.scenes import Case, Scene, Twins, add_sentence, edit_elsewhere, find_facts, note_page, set_field
from pipelines.bench.statements import draw_sentence
from pipelines.bench.vocabulary import Vocabulary
from pipelines.checks.volatility import is_volatile
from pipelines.corpus.store import Corpus, Fact
from pipelines.graph.evidence import cite_fact
from pipelines.graph.relations import read_attributes, type_value
from pipelines.names import fold_name
from pipelines.scoring.answers import derive_answer
from pipelines.scoring.dates import parse_date
from schemas.proofs import Answer

FULL = 0.1
"""Missing rate up to which a world's later snapshot is made: each takes seconds."""


def plant_gold(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D14: another gold answer than the page's, or another value in the infobox than the prose says.

    Where the prose is not understood, the edited infobox is refused as UNKNOWN, and the pair counts as undecided.
    """
    return (_claim_other if rng.random() < 0.5 else _edit_infobox)(case, rng)


def _claim_other(case: Case, rng: Random) -> Twins | None:
    """Return twins of which one claims a sibling's value, or a year beside its own.

    On both pages the true value is written in another way.
    """
    wrong = _draw_wrong(case, rng)
    if wrong is None:
        return None
    node = case.numbers[-1]
    text, facts = case.corpus.text(node), find_facts(case.corpus, node, case.question.proof.answer_relation)
    alone = len(facts) == 1
    page = set_field(text, facts[0], _write_alike(facts[0], case.question.answer)) if alone else note_page(text)
    claims = (case.claim, replace(case.claim, answer=wrong))
    clean, bad = (Scene(claim, {node: page}) for claim in claims)
    return Twins(f"gold {wrong.surface}", clean, bad, ("answer-changed",))


def _edit_infobox(case: Case, rng: Random) -> Twins | None:
    """Return twins of which one's infobox, and with it the gold, says otherwise than the prose of its page."""
    node, key = case.numbers[-1], case.question.proof.answer_relation
    facts = find_facts(case.corpus, node, key)
    wrong = _draw_wrong(case, rng)
    if len(facts) != 1 or wrong is None or case.question.proof.derivation:
        return None
    text = case.corpus.text(node)
    bad = set_field(text, facts[0], wrong.surface)
    written = set_field(text, facts[0], _write_alike(facts[0], case.question.answer))
    claim = replace(case.claim, answer=wrong)
    plant = f"infobox says {wrong.surface}"
    return Twins(plant, Scene(case.claim, {node: written}), Scene(claim, {node: bad}), ("answer-disputed",))


def _write_alike(fact: Fact, answer: Answer) -> str:
    """Return the same value in another form."""
    date = parse_date(answer.value) if answer.type == "date" else None
    if date is not None and date.day:
        return f"{{{{start date|{date.year}|{date.month}|{date.day}|df=y}}}}"
    return f"{fact.text}<!-- checked -->"


def _draw_wrong(case: Case, rng: Random) -> Answer | None:
    """Return an answer of the same type that is not the true one: near for dates and numbers, else a sibling's."""
    answer, key = case.question.answer, case.question.proof.answer_relation
    if answer.type == "date" and rng.random() < 0.7:
        year = int(answer.value[:4]) + rng.choice((-1, 1))
        shown = answer.surface.replace(answer.value[:4], str(year))
        return type_value(shown, f"{year:04}{answer.value[4:]}", key) if shown != answer.surface else None
    siblings = []
    for node in case.corpus.nodes_of_type(case.question.proof.nodes[-1].type).tolist():
        for attribute in read_attributes(case.corpus, node):
            if attribute.fact.key == key:
                other = derive_answer(attribute.answer, case.question.proof.derivation)
                if other is not None and other.type == answer.type and not _overlap(other, answer):
                    siblings.append(other)
    return rng.choice(siblings) if siblings else None


def _overlap(answer: Answer, other: Answer) -> bool:
    forms = {fold_name(form) for form in (answer.surface, answer.value, *answer.aliases)}
    return bool(forms & {fold_name(form) for form in (other.surface, other.value, *other.aliases)})


def plant_volatile(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D15: an answer that another dump of the wiki gives otherwise, or a fact that is known to change."""
    changing = case.pool.missing <= FULL and rng.random() < 0.5
    return _ask_changing(case, words, rng) if changing else _change_later(case, rng)


def _change_later(case: Case, rng: Random) -> Twins | None:
    """Return twins with another dump each: in one the asked fact has changed, in the other one a fact not asked for."""
    node, key = case.numbers[-1], case.question.proof.answer_relation
    wrong = _draw_wrong(case, rng)
    facts = find_facts(case.corpus, node, key)
    others = [fact for fact in case.corpus.facts(node) if fact.key != key and fact.target < 0 and fact.value_count == 1]
    if wrong is None or len(facts) != 1 or not others or case.question.proof.derivation:
        return None
    text, other = case.corpus.text(node), rng.choice(others)
    harmless = {node: set_field(text, other, f"{other.text} or so")}
    changed = {node: set_field(text, facts[0], wrong.surface)}
    return Twins(
        f"{key} is {wrong.surface} in another dump",
        Scene(case.claim, later=harmless),
        Scene(case.claim, later=changed),
        ("volatile",),
    )


def _ask_changing(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """Return twins before the later snapshot of the world: the answer stays, or is one that its list of changes has.

    In both an article off the path has a sentence more.
    """
    later, node = case.pool.later, case.numbers[-1]
    number = later.find(case.corpus.page(node).title)
    asked_now = find_facts(case.corpus, node, case.question.proof.answer_relation)
    if number is None or any(_has_changed(later, number, fact) for fact in asked_now):
        return None
    found = [
        attribute for attribute in read_attributes(case.corpus, node) if _has_changed(later, number, attribute.fact)
    ]
    if not found:
        return None
    attribute = rng.choice(found)
    asked = {"answer_relation": attribute.fact.key, "answer_evidence": cite_fact(case.corpus, attribute.fact)}
    proof = case.claim.proof.model_copy(update=asked)
    claim = replace(case.claim, answer=attribute.answer, proof=proof)
    other = later if rng.random() < 0.5 or not is_volatile(attribute.fact.key) else None
    aside = draw_sentence("asides", words, rng).format(value=rng.choice(words.words))
    edits = edit_elsewhere(case, aside, rng)
    return Twins(
        f"{attribute.fact.key} of {case.corpus.page(node).title}",
        Scene(case.claim, edits, other=later),
        Scene(claim, edits, other=other),
        ("volatile",),
    )


def _has_changed(later: Corpus, node: int, fact: Fact) -> bool:
    return fact.text not in {other.text for other in later.facts(node) if other.key == fact.key}


def plant_searchable(case: Case, words: Vocabulary, rng: Random) -> Twins | None:
    """D18: the words of the question on the answer's own page, where one text search finds them.

    What is findable is decided by a ranking of the bench's own, over the same texts.
    """
    rank = case.question.proof.thresholds.retrieval_rank
    if not rank:
        return None
    node = case.numbers[-1]
    text, question = case.corpus.text(node), case.question.text
    if not is_far(case.corpus, question, node, text, rank):
        return None
    # Names and years are left out: they could say something of the page, which may then fit an earlier node.
    stranger = " ".join(word for word in rng.choice(case.pool.questions).text.split() if word.islower())
    clean, bad = (add_sentence(text, said) for said in (_shuffle(stranger, rng)[:60], _shuffle(question, rng)))
    if rank_by_words(case.corpus, question, node, bad) != 1:
        return None
    if not is_far(case.corpus, question, node, clean, rank):
        return None
    return Twins(
        f"the words of the question on {case.corpus.page(node).title}",
        Scene(case.claim, {node: clean}),
        Scene(case.claim, {node: bad}),
        ("one-retrieval",),
    )


def _shuffle(text: str, rng: Random) -> str:
    """Return the words of a text in another order: a search engine does not mind, and nothing is quoted."""
    words = text.rstrip("?.!").split()
    rng.shuffle(words)
    return " ".join(words) + "."
