"""Each check disabled, inverted, or wrong in one place: some pair must no longer flip."""

from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import pytest

from pipelines.agent import depicting
from pipelines.checks import (
    agreement,
    answers,
    descriptors,
    examination,
    leakage,
    legibility,
    pictures,
    proofs,
    propositions,
    readings,
    sets,
    shortcuts,
    uniqueness,
    verdicts,
)
from pipelines.graph import facts, query, statements
from tests.mutants.corpora import Corpora, Judge, build_corpora, flips
from tests.mutants.mutate import (
    disable,
    find_nothing,
    find_opposite,
    install,
    invert,
    list_checks,
    list_finders,
    rewrite,
)
from tests.mutants.pairs import make_sets
from tests.mutants.pools import share_pool
from tests.sampled import draw_every

KILLERS = {
    "check_agreement": ("answer-disputed", "an uncontradicted answer"),
    "check_alternative": ("alternative-answer", "another answer that fits"),
    "check_answer": ("answer-leak", "D05 answer in another form"),
    "check_answer_unchanged": ("answer-changed", "an answer that does not follow"),
    "check_claims": ("unseen-claim", "D22 name seen nowhere", "D22 number seen nowhere"),
    "check_contamination": ("contaminated", "D22 question, id or protocol on a page", "D22 flagged by a tool"),
    "check_copies": ("picture-duplicate", "D13 another entity of the type", "D13 copy of another article's picture"),
    "check_counted": ("no-descriptor", "a constraint left out of a count"),
    "check_demonyms": ("demonym-leak", "D04 demonym"),
    "check_depiction": ("picture-of-another", "a picture that fits another better",
        "a picture of which little is said"),
    "check_earlier_pages": ("answer-on-earlier-page", "D10 shorter way"),
    "check_facts": ("no-descriptor", "a declared fact that is not said", "a declared fact alone"),
    "check_fit": ("not-unique", "D09 stands alone", "D06 visible twin"),
    "check_form": ("answer-form", "D16 unit missing or wrong", "D16 answer form"),
    "check_guessable": ("guessable-answer", "share at its limit"),
    "check_images": ("unknown-image", "D22 call on no picture", "D22 word of no picture"),
    "check_jumps": ("memory-jump", "D22 bridge never shown"),
    "check_kept": ("descriptor-lost", "another entity dropped"),
    "check_length": ("too-long", "D22 long page", "D22 long thought"),
    "check_licence": ("picture-not-free", "D13 picture too small or not free"),
    "check_named": ("descriptor-lost", "a name written otherwise"),
    "check_names": ("alias-leak", "D01 name or alias in the question"),
    "check_near_misses": ("near-miss", "D07 hidden twin"),
    "check_need": ("picture-not-needed", "D11 picture decorates"),
    "check_not_bridge": ("answer-is-bridge", "an answer that is a bridge"),
    "check_parts": ("picture-ambiguous", "D13 two entities in one picture"),
    "check_path": ("path-not-covered", "D22 page left out"),
    "check_path_length": ("shorter-path", "D10 shorter way", "steps at their limit"),
    "check_picture": ("picture-too-small", "D13 picture too small or not free"),
    "check_points": ("picture-of-another", "a picture of which little is said"),
    "check_precision": ("precision-unasked", "D16 precision not asked for"),
    "check_readable": ("picture-readable", "a name that was read", "a name that was misread"),
    "check_reference": ("reference-missing", "a reference that is left out", "a reference that says more"),
    "check_repetition": ("repetition", "D22 query again", "D22 call again"),
    "check_retrieval": ("one-retrieval", "D18 one search"),
    "check_simple": ("picture-too-simple", "D13 flag, logo, arms, map or card"),
    "check_single_value": ("multi-valued", "D08 second value", "D07 hidden value"),
    "check_size": ("picture-too-small", "D13 picture too small or not free"),
    "check_slot": ("no-descriptor", "two places for one entity"),
    "check_sought": ("from-memory", "D22 answer known before", "D22 no call"),
    "check_spoken": ("descriptor-lost", "a descriptor left out"),
    "check_support": ("unsupported", "D22 answer unsupported"),
    "check_timeless": ("volatile", "a question of its day"), "check_told": ("fact-unproved", "a fact nobody counted"),
    "check_tool_errors": ("tool-errors", "D22 errors in a row"),
    "check_turns": ("format", "D22 turn that is none", "D22 call that no tool takes"),
    "check_use": ("picture-ambiguous", "D13 file of several articles"),
    "check_volatility": ("volatile", "D15 volatile"),
}  # fmt: skip
"""By check: its usual code, and the pairs that must notice when it is wrong."""
ELSEWHERE = {
    "test_traces.py": ("check_apart", "check_decision", "check_different", "check_link", "check_quote",
                       "check_relation", "check_shape", "check_typed", "check_wording"),
    "test_concepts.py": ("check_concept", "check_opening"),
    "test_name_answers.py": ("check_single_answer",),
    "../stages/test_questions.py": ("check_derivable",),
    "test_uniqueness.py": ("check_side",),
}  # fmt: skip
"""Checks of news, of concepts, of answers that are things, of a whole query and of branches: they have cases of their
own under tests/pipelines and no pairs here yet, so none of their mutants is tried."""
FINDERS = ("find_constraint_problems", "find_hop_problems", "find_node_problems", "find_problems",
           "find_shape_problems", "find_span_problems")  # fmt: skip
TAMPERED = ("a constraint that is not said", "a sentence cited otherwise", "D24 tampered proof")
BY_HAND = (
    (uniqueness.check_fit, "fit.alone < threshold", "fit.alone <= threshold", "alone at its threshold"),
    (uniqueness.check_fit, "fit.alone < threshold", "fit.alone < threshold - 1", "alone at its threshold"),
    (uniqueness.check_fit, "fit.chain != 1", "fit.chain < 1", "D06 visible twin"),
    (uniqueness.check_fit, "fit.chain != 1", "fit.chain > 2", "D06 visible twin"),
    (uniqueness.count_fit, "alone >= threshold", "alone > threshold", "D24 tampered proof"),
    (uniqueness.check_near_misses, 'resolution != "absent"', 'resolution == "stated"', "a mention that may state it"),
    (uniqueness.check_near_misses, "if search.capped", "if not search", "near misses at their cap"),
    (uniqueness._check_single, "!= 1 or not", "!= 1 and not", "a field of two values"),
    (uniqueness.check_answer_unchanged, "derived != [key]", "not derived", "an answer that does not follow"),
    (statements.list_rivals, "len(found) > limit", "len(found) >= limit", "near misses at their cap"),
    (statements.list_rivals, "len(found) > limit", "len(found) > limit + 1", "near misses at their cap"),
    (statements.resolve_rival, '"unclear" if "unclear" in results else ', "", "a mention that may state it"),
    (facts.parse_period, "first + 9", "first + 10", "years at the ends of a decade"),
    (facts.parse_period, "first + 9", "first + 8", "years at the ends of a decade"),
    (facts.parse_period, "* 100 - 99", "* 100 - 100", "years at the ends of a decade"),
    (facts.list_periods, "(date.year - 1) // 100", "date.year // 100", "years at the ends of a decade"),
    (query.matches, "all(", "any(", "years at the ends of a decade"),
    (query.match_literal, "if field.complete", "if not field.complete", "a mention that may state it"),
    (leakage.LeakIndex._match_at, "all(map(_is_form_of", "any(map(_is_form_of", "D01 name or alias in the question"),
    (leakage.LeakIndex._match_at, "list_singulars(words[place])", "(words[place],)", "a short name in the plural"),
    (leakage._find_nothing, "not all(any(", "not any(any(", "a node without names"),
    (leakage._find_nothing, "not all(any(", "not all(all(", "a node without names"),
    (shortcuts.check_path_length, "hops - 1:", "hops - 2:", "steps at their limit"),
    (shortcuts.check_path_length, "length < hops - 1", "length <= hops - 1", "steps at their limit"),
    (shortcuts.check_earlier_pages, "nodes[:-1]", "nodes[1:-1]", "an answer on the anchor's page"),
    (shortcuts.check_earlier_pages, "nodes[:-1]", "nodes", "D10 shorter way"),
    (examination.check_need, "answers < least", "answers <= least", "answers at their threshold"),
    (examination.check_need, "answers < least", "answers < least - 1", "answers at their threshold"),
    (shortcuts.check_guessable, "others / trials > max_share", "others / trials >= max_share", "share at its limit"),
    (shortcuts.check_guessable, "round(share * observed) - 1", "round(share * observed)", "share at its limit"),
    (answers.check_form, "> max_tokens", ">= max_tokens", "words at their limit"),
    (answers.check_form, "> max_tokens", "> max_tokens + 1", "words at their limit"),
    (pictures.check_size, ">= min_side", "> min_side", "sides at their limit"),
    (pictures.check_copies, "title not in copy.titles", "title in copy.titles", "D13 another entity of the type"),
    (pictures.check_parts, "title not in copy.titles", "copy.titles", "D13 two entities in one picture"),
    (pictures.check_use, "set(depicts) != {qid}", "qid not in depicts", "a file that leads two articles"),
    (descriptors.check_reference, "if added:", "if added and not added:", "a reference that says more"),
    (legibility.check_readable, "        _check_noisy(text, names, answer, words),\n", "", "a name that was misread"),
    (legibility._check_answers, "        yield _check_digits(text, answer)\n", "", "a name that was misread"),
    (depicting.check_depiction, "> 0.0", ">= 0.0",
        "a picture that fits another better"),
    (depicting.check_depiction, "< DISTRACTORS", "<= DISTRACTORS",
        "a picture that fits another better"),
    (depicting.check_points, ">= METADATA_PASSES", "> METADATA_PASSES", "a picture of which little is said"),
    (pictures.check_size, "min(width", "max(width", "sides at their limit"),
    (agreement.check_agreement, 'mode == "off"', 'mode != "required"', "an uncontradicted answer"),
    (shortcuts.check_retrieval, "if not rank", "if rank", "D18 one search"),
    (shortcuts.check_retrieval, "min(rank", "max(rank", "a page further down than a small corpus is searched"),
    (verdicts.run_checks, "if not result.passed", 'if result.outcome == "FAIL"', "a mention that may state it"),
    (verdicts.run_checks, "if not audit", "if True", "two faults at once"),
    (proofs._check_counts, "count.value < least", "count.value <= least", "D24 tampered proof"),
    (proofs._check_counts, "times > 1", "times > 2", "D24 tampered proof"),
    (readings.compare_reading, "digest_text(text) != reading.text", "not text", "another text read"),
    (readings.compare_reading, "if reading.unsure", "if not reading", "doubts of a reader"),
    (readings._list_differences, "reading.questions != 1", "reading.questions > 1", "no question read"),
    (readings._list_differences, "reading.questions != 1", "reading.questions < 1", "two questions read"),
    (readings._list_differences, "if reading.instruction", "if not reading", "an instruction read"),
    (readings._list_differences, "or not folded", "or None is folded", "words that stand nowhere"),
    (readings._list_differences, "reading.form != answer.precision", "not reading.form", "another precision read"),
    (readings._list_differences, "parse_unit(reading.unit) != answer.unit", "not answer", "another unit read"),
    (readings._list_differences, "if not _is_asked(", "if None is _is_asked(", "another attribute read"),
    (readings._compare_hops, "len(hops) != len(proof.hops)", "len(hops) > len(proof.hops)", "a hop fewer read"),
    (readings._compare_hops, "read.backward != hop.backward", "not hop", "a hop read the other way"),
    (readings._compare_hops, "if not _is_same_hop(", "if None is _is_same_hop(", "no relation read"),
    (readings._is_same_hop, "fact.target == nodes[target]", "fact", "another relation read"),
    (readings._compare_facts, "elif read.statement or", "elif", "another condition read"),
    (readings._compare_facts, "or not _is_noun(read, proof)", "or None", "a condition of no field read"),
    (readings._compare_facts, "for fact in left:", "for fact in []:", "a condition not read"),
    (readings._is_same_fact, "is_same_value(read.value, fact)", "True", "a condition of another value"),
    (readings.judge_screening, "screening.text != digest_text(text) or", "", "another text screened"),
    (readings.judge_screening, "or screening.hidden != list_hidden(proof, answer)", "", "other names screened"),
    (readings.judge_screening, "if screening.others !=", "if None is screening.others and None !=",
        "other entities screened"),
    (readings.judge_screening, "if screening.leaks", "if not screening", "a leak screened"),
    (readings.judge_screening, "if screening.fitting", "if not screening", "another entity screened"),
    (readings.judge_screening, "if screening.several", "if not screening", "several answers screened"),
    (readings.judge_screening, "if screening.unsure", "if not screening", "doubts of a screening"),
    (propositions._list_against, '("other", "unclear")', '("unclear",)', "another value on a page"),
    (propositions._list_against, '("other", "unclear")', '("unclear",)', "another value of another time"),
    (propositions._list_against, '("other", "unclear")', '("other",)', "a value that may be another"),
    (propositions._list_against, '("other", "unclear")', '("unclear",)', "another entity on a page"),
    (propositions._list_against, '("other", "unclear")', '("other",)', "an entity that may be another"),
    (sets.find_quota, "low, high = 1,", "low, high = max(counts),", "D19 repeats"),
    (sets.refuse_duplicates, "if found:", "if found and not found:", "D19 repeats"),
)  # fmt: skip
"""Function, a piece of its source, what it becomes, and the pairs that must notice."""
KINDS = ("disabled", "inverted")


@dataclass(frozen=True)
class Bench:
    """The sets of pairs, and how many of each flip while every check is right."""

    sets: dict[str, Judge]
    right: dict[str, int] = field(default_factory=dict)

    def count_flips(self, name: str) -> int:
        return sum(map(flips, self.sets[name]()))

    def count_right(self, name: str) -> int:
        if name not in self.right:
            self.right[name] = self.count_flips(name)
        return self.right[name]

    def find_killer(self, original, wrong, names) -> str:
        """Return the first set of which fewer pairs flip under a mutant, with the counts; empty when all still do."""
        right = {name: self.count_right(name) for name in names}
        with install(original, wrong):
            for name in names:
                left = self.count_flips(name)
                if left < right[name]:
                    return f"{name}: {left} of {right[name]} flip"
        return ""


@pytest.fixture(scope="session")
def corpora(tmp_path_factory) -> Corpora:
    for pool in share_pool(tmp_path_factory):
        yield build_corpora(pool, tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="session")
def bench(corpora) -> Bench:
    return Bench(make_sets(corpora))


def test_every_check_and_every_finder_of_problems_has_pairs_that_need_it():
    elsewhere = [name for names in ELSEWHERE.values() for name in names]
    assert sorted([*KILLERS, *elsewhere]) == sorted(list_checks())
    folder = Path(__file__).parents[1] / "pipelines" / "checks"
    assert [name for name in ELSEWHERE if not (folder / name).is_file()] == []
    assert list(FINDERS) == sorted(list_finders())


def test_every_pair_flips_as_long_as_the_checks_are_right(bench):
    used = {name for _, *names in KILLERS.values() for name in names} | {name for *_, name in BY_HAND}
    assert used <= bench.sets.keys()
    for name, judge in bench.sets.items():
        pairs = judge()
        assert pairs, name
        assert [pair for pair in pairs if not flips(pair)] == [], name


def test_what_is_wrong_in_one_place_is_still_made_of_the_source():
    assert [old for original, old, new, _ in BY_HAND if rewrite(old, new)(original) is original] == []


def test_a_mutant_is_gone_when_it_is_no_longer_wanted():
    checks = list_checks()
    for check in checks.values():
        with install(check, disable):
            assert list_checks() != checks
    assert list_checks() == checks


@pytest.mark.parametrize(("name", "kind"), draw_every(7, list(product(KILLERS, KINDS))))
def test_a_check_that_says_nothing_or_the_opposite_is_noticed(bench, request, name, kind):
    code, *names = KILLERS[name]
    killer = bench.find_killer(list_checks()[name], disable if kind == "disabled" else invert(code), names)
    request.node.user_properties.append(("mutant", f"{name} {kind}: {killer}"))
    assert killer


@pytest.mark.parametrize(("name", "kind"), draw_every(5, list(product(list_finders(), KINDS))))
def test_a_finder_that_finds_nothing_or_the_opposite_is_noticed(bench, request, name, kind):
    wrong = find_nothing if kind == "disabled" else find_opposite
    killer = bench.find_killer(list_finders()[name], wrong, TAMPERED)
    request.node.user_properties.append(("mutant", f"{name} {kind}: {killer}"))
    assert killer


@pytest.mark.parametrize(
    ("original", "old", "new", "pairs"),
    draw_every(6, BY_HAND),
    ids=[f"{original.__name__}-{new or old}" for original, old, new, _ in draw_every(6, BY_HAND)],
)
def test_a_check_that_is_wrong_in_one_place_is_noticed(bench, request, original, old, new, pairs):
    killer = bench.find_killer(original, rewrite(old, new), [pairs])
    request.node.user_properties.append(("mutant", f"{original.__name__} {old!r} -> {new!r}: {killer}"))
    assert killer
