"""Rewards of the published agents, in one file that needs nothing but Python: it is shipped with RL data.

- ``opensearch-vl``: r_fmt * (0.8 r_acc + 0.2 r_query), both r_fmt and r_query over the steps before the fatal one
  (OpenSearch-VL, 4.2, equation 9, and appendix B.1).
- ``mmsearch-r1``: 0.9 acc, of that nine tenths where it searched, + 0.1 fmt (MMSearch-R1, 2.4, equation 1).
- ``vsearcher``: acc, and nothing for a trajectory with a turn of the wrong form (VSearcher, 2.3, equation 6).
- ``dr-mmsearch``: 0.7 acc + 0.2 fmt + 0.1 Gaussian of the number of calls (DR-MMSearchAgent, 3.2, equations 10, 11).
- ``mars``: acc + 0.5 fmt (SenseNova-MARS, 3.2 and 4.1).

Where a part cannot be scored (a judge without an answer, no accepted answer), it is NaN and the component ``unscored``
is 1.0; with ``on_unscored="raise"`` an error is raised.

The text is read turn by turn. Where a tokenizer keeps tags or role names as special tokens,
``skip_special_tokens=True`` removes them before a reward sees them: call :func:`find_lost_tags` once before training.
Text inside a tool's reply never counts as the model's; but a reply that closes its own tag can pass for a turn, so
tools must remove tags (those of synth do). A judge that raises stops the training; one that returns None is undecided.
"""

import importlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

AnswerJudge = Callable[[str, str, Sequence[str]], "bool | None"]
"""From question, answer and accepted answers to right, wrong or undecided."""
QueryJudge = Callable[[str, Sequence[str]], "float | None"]
"""From question and the calls in order, as JSON or text, to a grade from 0 to 1 or undecided."""
Components = dict[str, float]

ALPHA = 0.8
"""Share of accuracy in OpenSearch-VL's composite (eq. 9)."""
SEARCH_PENALTY, FORMAT_WEIGHT = 0.1, 0.1
"""MMSearch-R1, 4.1 and appendix F.1."""
DR_WEIGHTS = (0.7, 0.2, 0.1)
DR_CORRECT, DR_WRONG = (2.0, 2.0), (4.0, 1.2)
"""Mean and deviation of the number of calls. (4, 1.2) is table 5's best row; a mean of 2 for right answers is in the
authors' code; their deviation is printed nowhere, only that it is the broader one."""
MARS_FORMAT = 0.5
PATIENCE = 3
"""K: consecutive failed calls that make a trajectory fatal (OpenSearch-VL, B.1)."""
FATAL = {"begins": 0, "reached": 1}
"""Which of the two places of :func:`find_fatal` ends the prefix."""
LONGEST = 300
"""Characters of a text that is compared as a number or a date."""


class UnscoredReward(RuntimeError):
    """A reward could not be determined, and ``on_unscored`` is ``raise``."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """What one dialect calls its blocks."""

    thought: str = "think"
    calls: tuple[str, ...] = ("tool_call",)
    answer: str = "answer"
    summary: str = ""
    """Block before the answer; empty where there is none."""
    remarks: bool = False
    """Whether words may stand between the thought and the act."""


PROTOCOLS: Mapping[str, Protocol] = {
    "synth": Protocol(),
    "native": Protocol(),
    "opensearch-vl": Protocol(answer="response"),
    "vsearcher": Protocol(),
    "mmsearch-r1": Protocol("reason", ("search", "text_search"), remarks=True),
    "mars": Protocol(),
    "mars-thinking": Protocol("thinking"),  # as its Qwen3-VL models are told
    "dr-mmsearch": Protocol(summary="summary"),
}
_REPLIES = ("tool_response", "information", "observation")
_BLOCKS = ("think", "thinking", "reason", "tool_call", "search", "text_search", "summary", "answer", "response")
_MARK = re.compile(rf"<(/?)({'|'.join((*_BLOCKS, *_REPLIES))})>|^(user|tool|assistant)[ \t]*$", re.MULTILINE)
_NO_ACTS = ("think", "thinking", "reason", "summary")
_CONTROL = re.compile(r"<\|[^<>|\n]{0,40}\|>")
_PLACEHOLDER = "<image>"
_FAILURES = ("error:", "Error executing tool", "Error when executing tool")
"""How a failed call's reply begins, ours and veRL's; only at its beginning, since pages speak of errors too."""


@dataclass(frozen=True, slots=True)
class RewardTurn:
    """One turn of the model and whether its call failed."""

    text: str
    valid: bool
    """Whether it has the form that its place asks for: an answer at the end, a call everywhere else."""
    calls: tuple[str, ...]
    """Insides of the complete call blocks; more than one is not valid, and still was done."""
    searches: bool
    answer: str | None
    failed: bool


def read_turns(
    solution: str | Sequence[str], protocol: Protocol, failed: Sequence[bool] | None = None
) -> tuple[RewardTurn, ...]:
    """Return a trajectory's turns.

    Args:
        solution: the decoded text with the tools' replies in it, or the model's own texts one by one.
        protocol: names of its blocks.
        failed: for each turn, whether its call failed; read off the replies where not given.
    """
    parts = split_turns(solution) if isinstance(solution, str) else [(text, "") for text in solution]
    turns = []
    for place, (text, reply) in enumerate(parts):
        error = reply.lstrip().startswith(_FAILURES) if failed is None else place < len(failed) and failed[place]
        turns.append(_read_turn(text, error, protocol, place == len(parts) - 1))
    return tuple(turns)


def split_turns(text: str) -> list[tuple[str, str]]:
    """Return the model's turns with the replies to them.

    A reply begins with its tag, or with a line that is ``user`` or ``tool`` after a finished act. One that has such a
    line ends with a line that is ``assistant``, another one with the model's next block.
    """
    text = _CONTROL.sub("", text)
    turns: list[tuple[str, str]] = []
    start, reply, inside, acted, headed = 0, -1, "", False, False
    for mark in _MARK.finditer(text):
        close, tag, role = mark.groups()
        if inside:
            inside = "" if close and tag == inside else inside
        elif tag in _REPLIES or (role in ("user", "tool") and (acted or reply >= 0)):
            reply = mark.start() if reply < 0 else reply
            inside, headed = "" if role or close else tag, headed or bool(role)
        elif reply >= 0 and (role or not headed):
            turns.append((text[start:reply], text[reply : mark.start()]))
            start, reply, acted, headed = mark.end() if role else mark.start(), -1, False, False
        else:
            acted = acted or (bool(close) and tag not in _NO_ACTS)
    turns.append((text[start:reply], text[reply:]) if reply >= 0 else (text[start:], ""))
    return [(_drop_role(said), _drop_tag(heard)) for said, heard in turns]


def _drop_role(text: str) -> str:
    text = text.strip().removeprefix("assistant\n").removesuffix("assistant").strip()
    end = len(text)
    while text.endswith(_PLACEHOLDER, 0, end):
        end -= len(_PLACEHOLDER)
    return text[:end].rstrip().removesuffix("\nuser").removesuffix("\ntool").strip()


def _drop_tag(text: str) -> str:
    text = text.strip().removeprefix("user\n").removeprefix("tool\n").lstrip()
    start = 0
    while text.startswith(_PLACEHOLDER, start):
        start += len(_PLACEHOLDER)
    text = text[start:].lstrip()
    for tag in _REPLIES:
        text = text.removeprefix(f"<{tag}>")
    return text.lstrip()


def _read_turn(text: str, failed: bool, protocol: Protocol, last: bool) -> RewardTurn:
    blocks = _find_blocks(text)
    names = tuple(name for name, _, _ in blocks)
    inner = [text[start:end].strip() for _, start, end in blocks]
    calls = tuple(inside for name, inside in zip(names, inner, strict=True) if name in protocol.calls)
    searches = any(
        _is_search(name, inside) for name, inside in zip(names, inner, strict=True) if name in protocol.calls
    )
    answer = inner[-1] if names and names[-1] == protocol.answer and last else None
    end = (protocol.summary, protocol.answer) if protocol.summary else (protocol.answer,)
    if last:
        valid = names == (protocol.thought, *end)
    else:
        valid = len(names) == 2 and names[0] == protocol.thought and _is_call(names[1], inner[1], protocol)
    valid = valid and not failed and bool(inner[0]) and _is_bare(text, blocks, protocol.remarks)
    return RewardTurn(text, valid, calls, searches, answer or None, failed)


def _find_blocks(text: str) -> list[tuple[str, int, int]]:
    """Return the blocks as name, start and end of the inside; a stray or nested tag is a block named by its text."""
    blocks: list[tuple[str, int, int]] = []
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        if mark[3]:
            continue
        if opened is None and not mark[1]:
            opened = mark
        elif opened is not None and mark[1] and mark[2] == opened[2]:
            blocks.append((opened[2], opened.end(), mark.start()))
            opened = None
        else:
            blocks.append((mark[0], mark.start(), mark.end()))
    return [*blocks, (opened[0], opened.start(), opened.end())] if opened else blocks


def _is_bare(text: str, blocks: Sequence[tuple[str, int, int]], remarks: bool) -> bool:
    """Say whether no words stand outside the blocks, but between the thought and the act where remarks may."""
    place, bare = 0, True
    for number, (name, start, end) in enumerate(blocks):
        gap = text[place : start - len(name) - 2]
        bare = bare and (not gap.strip() or (remarks and number > 0))
        place = end + len(name) + 3
    return bare and not text[place:].strip()


def _is_call(name: str, inside: str, protocol: Protocol) -> bool:
    if name not in protocol.calls:
        return False
    if name == "search":
        return inside == "<img>"
    return bool(_read_call(inside)) if name == "tool_call" else bool(inside)


def _read_call(inside: str) -> str:
    try:
        call = json.loads(inside)
    except (ValueError, RecursionError):
        return ""
    named = isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), dict)
    return call["name"].strip() if named else ""


def _is_search(name: str, inside: str) -> bool:
    return name != "tool_call" or "search" in _read_call(inside)


def find_lost_tags(decode: Callable[[str], str], dialect: str = "synth") -> tuple[str, ...]:
    """Return a dialect's tags that encoding and decoding removes; there must be none.

    Args:
        decode: encodes a text and decodes it as the trainer does, special tokens left out.
        dialect: one of ``PROTOCOLS``.
    """
    protocol = PROTOCOLS[dialect]
    names = (protocol.thought, *protocol.calls, protocol.answer, protocol.summary, "tool_response")
    return tuple(
        tag for name in names if name for tag in (f"<{name}>", f"</{name}>") if tag not in decode(f"a {tag} b")
    )


def format_reward(turns: Sequence[RewardTurn]) -> float:
    """Return the share of well-formed steps (OpenSearch-VL, 4.2); 0.0 without steps."""
    return sum(turn.valid for turn in turns) / len(turns) if turns else 0.0


def is_well_formed(turns: Sequence[RewardTurn]) -> bool:
    """Say whether every turn has its form: the binary format score of MMSearch-R1, VSearcher and MARS."""
    return bool(turns) and all(turn.valid for turn in turns)


def find_fatal(failed: Sequence[bool], patience: int = PATIENCE) -> tuple[int, int] | None:
    """Return where the first run of failed calls begins and where it reaches ``patience``; None where none does.

    The paper says both: 4.2 takes the step where the errors "commence", equation 20 the one where their count is K.
    """
    run = 0
    for place, error in enumerate(failed):
        run = run + 1 if error else 0
        if run == patience:
            return place - patience + 1, place
    return None


def accuracy_reward(
    answer: str | None, accepted: Sequence[str], question: str = "", judge: AnswerJudge | None = None
) -> float | None:
    """Return 1.0 for an accepted answer, 0.0 for another or none, and None where it cannot be decided.

    The whole answer must equal an accepted one: the same text but for case, diacritics, punctuation and an article, the
    same number and unit, or the same day. The judge decides everything else; without a judge it is wrong, as in the
    exact match of MMSearch-R1.
    """
    if not any(form.strip() for form in accepted):
        return None
    if not answer:
        return 0.0
    verdicts = [
        match_answer(form, text) for form in (answer, *_find_boxed(answer)) for text in accepted if text.strip()
    ]
    if True in verdicts:
        return 1.0
    if judge is None:
        return None if None in verdicts else 0.0
    verdict = judge(question, answer, accepted)
    return None if verdict is None else float(verdict)


def _find_boxed(answer: str) -> list[str]:
    return re.findall(r"boxed\{([^{}]{1,300})\}", answer)[-1:]


def match_answer(given: str, accepted: str) -> bool | None:
    """Return whether two short texts mean the same; None for a numeric date or unit that can be read in two ways."""
    if len(given) > LONGEST + 4 * len(accepted):
        return False
    first, second = fold_answer(given), fold_answer(accepted)
    if first and first == second:
        return True
    if max(len(given), len(accepted)) > LONGEST:
        return False
    day, days = _read_dates(given), _read_dates(accepted)
    if day and days:
        return _compare_days(day, days)
    number, expected = _read_number(given), _read_number(accepted)
    if number is None or expected is None or number[0] != expected[0]:
        return False
    if number[1] == expected[1] or not number[1]:
        return True
    return None if not expected[1] else False


def _compare_days(given: set[tuple[int, int, int]], accepted: set[tuple[int, int, int]]) -> bool | None:
    # A finer date within the accepted one may be wrong in what that does not say.
    if given & accepted:
        return True if len(given | accepted) == 1 else None
    finer = any(all(part in (0, own) for own, part in zip(a, b, strict=True)) for a in given for b in accepted)
    return None if finer else False


def fold_answer(text: str) -> str:
    """Return a text without case, diacritics, an article at its front and punctuation that is not inside a number."""
    text = unicodedata.normalize("NFKD", text.replace("\u2212", "-")).casefold()
    text = "".join(char for char in text if not unicodedata.combining(char) and unicodedata.category(char) != "Cf")
    text = re.sub(r"['\u2019\u02bc]", "", text)
    kept = [char if not _is_mark(char) or _holds_number(text, place) else " " for place, char in enumerate(text)]
    words = "".join(kept).split()
    return " ".join(words[1:] if len(words) > 1 and words[0] in ("a", "an", "the") else words)


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "P" and char not in "#%@*&"


def _holds_number(text: str, place: int) -> bool:
    # 1.5 is not 15, and -5 is not 5.
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not after.isdigit():
        return False
    return before.isdigit() or (text[place] == "-" and not before.isalnum())


_UNIT_TEXT = """m metre metres meter meters|km kilometre kilometres kilometer kilometers|cm centimetre centimetres
|mm millimetre millimetres|ft foot feet|mi mile miles|kg kilogram kilograms|g gram grams|t tonne tonnes|s second seconds
|min minute minutes|h hour hours|day days|year years|% percent|m2 m² sqm|km2 km² sqkm|ha hectare hectares|c °c|f °f"""
_UNITS = {word: line.split()[0] for line in _UNIT_TEXT.split("|") for word in line.split()}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_NUMBER = re.compile(
    r"(-?)([$€£¥]?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?: ?(thousand|million|billion|trillion)\b)?"
    r" ?([^\W\d]\D{0,30}|%|°[cf]|)"
)


def _read_number(text: str) -> tuple[Decimal, str] | None:
    text = " ".join(text.replace("\u2212", "-").casefold().split()).rstrip(".")
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    sign, currency, whole, fraction, scale, unit = match.groups()
    value = Decimal(f"{sign}{whole.replace(',', '')}{fraction or ''}").scaleb(_SCALES.get(scale, 0))
    return value, currency + _UNITS.get(unit.replace("square ", "sq").strip(), unit)


_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?", r"(?P<year>\d{3,4})"
_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:the )?{_DAY} (?:of )?{_MONTH},? {_YEAR}", rf"{_MONTH} {_DAY},? {_YEAR}", rf"{_MONTH},? {_YEAR}",
        r"(?P<year>\d{4})-(?P<number>\d\d)(?:-(?P<day>\d\d))?",
    )
)  # fmt: skip
_NUMERIC = re.compile(r"(\d{1,2})[./-](\d{1,2})[./-](\d{4})")


def _read_dates(text: str) -> set[tuple[int, int, int]]:
    # Parts that are not given are 0.
    text = re.sub(r"^(?:on|in|the year|in the year) ", "", " ".join(text.casefold().split()).rstrip("."))
    if re.fullmatch(r"\d{3,4}", text):
        return {(int(text), 0, 0)}
    for pattern in _DATES:
        if match := pattern.fullmatch(text):
            parts = match.groupdict()
            month = _MONTHS.index(parts["month"][:3]) + 1 if parts.get("month") else int(parts["number"] or 0)
            return {(int(parts["year"]), month, int(parts.get("day") or 0))}
    if match := _NUMERIC.fullmatch(text):
        first, second, year = map(int, match.groups())
        return {(year, month, day) for day, month in ((first, second), (second, first)) if month <= 12 and day <= 31}
    return set()


@dataclass(frozen=True, slots=True)
class ScoredAttempt:
    """The inputs of a reward."""

    turns: tuple[RewardTurn, ...]
    acc: float
    """0.0 where it cannot be decided."""
    prefix: int
    question: str
    query_judge: QueryJudge | None
    alpha: float


def _score_opensearch(attempt: ScoredAttempt, parts: Components) -> float:
    # r_fmt * (alpha r_acc + (1 - alpha) r_query); without a grade accuracy has the whole weight (eq. 9).
    kept = attempt.turns[: attempt.prefix]
    parts["fmt"] = format_reward(kept)
    if attempt.query_judge is None:
        return parts["fmt"] * attempt.acc
    grade = attempt.query_judge(attempt.question, [call for turn in kept for call in turn.calls])
    if grade is None or not 0.0 <= grade <= 1.0:
        parts["unscored"] = 1.0
        return parts["fmt"] * attempt.acc
    parts["query"] = grade
    return parts["fmt"] * (attempt.alpha * attempt.acc + (1 - attempt.alpha) * grade)


def _score_mmsearch(attempt: ScoredAttempt, parts: Components) -> float:
    # 0.9 acc, of that nine tenths if it searched, + 0.1 fmt (MMSearch-R1, 2.4, eq. 1).
    kept = 1 - SEARCH_PENALTY if any(turn.searches for turn in attempt.turns) else 1.0
    return (1 - FORMAT_WEIGHT) * attempt.acc * kept + FORMAT_WEIGHT * parts["fmt"]


def _score_dr(attempt: ScoredAttempt, parts: Components) -> float:
    # 0.7 acc + 0.2 fmt + 0.1 Gaussian of the number of calls (DR-MMSearchAgent, eq. 10 and 11).
    # "Divided into two parts": tool calls and the summary before the answer, half each as in the authors' code.
    calls = sum(len(turn.calls) for turn in attempt.turns)
    rest, last = attempt.turns[:-1], attempt.turns[-1:]
    parts["fmt"] = (float(bool(last) and all(turn.valid for turn in rest)) + float(is_well_formed(last))) / 2
    if math.isnan(parts["acc"]):
        return 0.0
    mean, deviation = DR_CORRECT if attempt.acc == 1.0 else DR_WRONG
    parts["efficiency"] = math.exp(-((calls - mean) ** 2) / (2 * deviation**2))
    return DR_WEIGHTS[0] * attempt.acc + DR_WEIGHTS[1] * parts["fmt"] + DR_WEIGHTS[2] * parts["efficiency"]


REWARDS: Mapping[str, Callable[[ScoredAttempt, Components], float]] = {
    "opensearch-vl": _score_opensearch,
    "mmsearch-r1": _score_mmsearch,
    "vsearcher": lambda attempt, parts: attempt.acc * parts["fmt"],
    "dr-mmsearch": _score_dr,
    "mars": lambda attempt, parts: attempt.acc + MARS_FORMAT * parts["fmt"],
}


def compute_score(
    data_source: str,
    solution_str: str | Sequence[str],
    ground_truth: str | Sequence[str],
    extra_info: Mapping[str, Any] | None = None,
    **options: Any,  # noqa: ANN401 - veRL's reward_kwargs
) -> Components:
    """Return ``score`` and its components; veRL's ``custom_reward_function``.

    Args:
        data_source: not read: every row of ours is scored alike.
        solution_str: the decoded response with the tools' replies, or the model's turns (MMSearch-R1's manager).
        ground_truth: the answer, or all that are accepted.
        extra_info: of the row: ``question``, ``candidate_answers`` (a list or its JSON), and the options.
        options: each but the judges also read from ``extra_info``. ``reward`` (one of ``REWARDS``, default
            opensearch-vl), ``dialect`` (one of ``PROTOCOLS``, default the reward's own), ``alpha``, ``fatal_index``
            (``begins`` or ``reached``), ``failed`` (whether each call failed), ``on_unscored`` (``flag`` or ``raise``),
            ``answer_judge`` and ``query_judge`` (callables, or ``package.module:function``).

    Returns:
        The same keys for every row, all floats: ``score``, ``acc``, ``fmt``, ``query``, ``efficiency``, ``turns``,
        ``calls``, ``searched``, ``answered``, ``prefix`` (steps before the fatal one), ``fatal`` and ``unscored``.
        A part that is not measured is NaN, and so is a mean over rows with it, as in veRL's validation metrics: compare
        ``acc`` with ``unscored``. The score is always a number.

    Raises:
        UnscoredReward: if it cannot be scored and ``on_unscored`` is ``raise``.
        ValueError: for an unknown reward, dialect or fatal index.
    """
    del data_source
    given = {**(extra_info or {}), **options}
    name = _choose(given, "reward", REWARDS, "opensearch-vl")
    protocol = PROTOCOLS[_choose(given, "dialect", PROTOCOLS, name)]
    strict = _choose(given, "on_unscored", {"flag": False, "raise": True}, "flag") == "raise"
    turns = read_turns(solution_str, protocol, given.get("failed"))
    question = str(given.get("question") or "")
    # Never from the row: foreign data could name any function to import and call.
    answer_judge, query_judge = _find_judge(options.get("answer_judge")), _find_judge(options.get("query_judge"))
    answer = turns[-1].answer if turns else None
    acc = accuracy_reward(answer, list_accepted(ground_truth, given.get("candidate_answers")), question, answer_judge)
    fatal, index = find_fatal([turn.failed for turn in turns]), _choose(given, "fatal_index", FATAL, "reached")
    prefix = len(turns) if fatal is None else fatal[FATAL[index]]
    attempt = ScoredAttempt(turns, acc or 0.0, prefix, question, query_judge, float(given.get("alpha", ALPHA)))
    parts: Components = {
        "score": 0.0,
        "acc": math.nan if acc is None else acc,
        "fmt": float(is_well_formed(turns)),
        "query": math.nan,
        "efficiency": math.nan,
        "turns": float(len(turns)),
        "calls": float(sum(len(turn.calls) for turn in turns)),
        "searched": float(any(turn.searches for turn in turns)),
        "answered": float(answer is not None),
        "prefix": float(prefix),
        "fatal": float(prefix < len(turns)),
        "unscored": float(acc is None),
    }
    score = REWARDS[name](attempt, parts)
    parts["score"] = 0.0 if acc is None else score
    if parts["unscored"] and strict:
        raise UnscoredReward(f"the {name} reward of {given.get('question_id') or question[:80]!r} cannot be determined")
    return parts


def list_accepted(truth: Any, candidates: Any = None) -> list[str]:  # noqa: ANN401 - what a Parquet reader makes of it
    """Return all accepted answers once each, from a text, a list, an array or a list as JSON."""
    if isinstance(candidates, str):
        candidates = _read_list(candidates)
    found: list[str] = []
    for source in (truth, candidates):
        values = source.tolist() if hasattr(source, "tolist") else source
        found += [values] if isinstance(values, str) else [text for text in values or () if isinstance(text, str)]
    return list(dict.fromkeys(found))


def _read_list(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except ValueError:
        return [text]
    return values if isinstance(values, list) else [text]


def _choose(given: Mapping[str, Any], key: str, known: Mapping[str, object], default: str) -> str:
    name = str(given.get(key) or default)
    if name not in known:
        raise ValueError(f"{key} is {name!r}; it is one of {', '.join(known)}")
    return name


def _find_judge(judge: Any) -> Any:  # noqa: ANN401 - either kind of judge
    """Return a judge that is given itself or, in a trainer's YAML, as ``package.module:function``."""
    if not isinstance(judge, str):
        return judge
    module, _, function = judge.partition(":")
    return getattr(importlib.import_module(module), function)
