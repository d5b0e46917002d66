"""Faults of a row that somebody else made: of its question and answers by their words alone, and of its picture."""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

import numpy as np
from anyascii import anyascii
from ftfy.badness import is_bad

from pipelines.checks.descriptors import find_references, find_slot
from pipelines.checks.leakage import check_answer, check_file_names, split_bare_words
from pipelines.checks.legibility import LETTERS_AN_ERROR, count_edits
from pipelines.checks.pictures import MIN_EDGES, SIDE, check_simple, find_telling_word, measure_plainness
from pipelines.errors import RecordFailed
from pipelines.graph.answers import type_answer
from pipelines.names import compile_phrase, fold_name, is_common_word
from pipelines.pictures import find_extension, open_pixels, read_header
from schemas.proofs import Answer


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a row, by its name in the audit's list."""

    name: str
    detail: str = ""
    """What exactly was found, for a reader."""


SHOWN = 80
"""Characters of a text that a detail quotes."""
MOST_FORMS = 40
"""Answers of a row that are looked at: some files list hundreds."""
LONGEST_ASKED = 120
"""Words of a question; a longer text is a prompt, with instructions that hold questions of their own."""
LONGEST_READ, LONGEST_PROMPT = 2000, 20_000
"""Characters of an answer or a question, and of a prompt that may hold its answer, that are looked at: on a longer text
of a stranger an expression may take hours."""
MOST_ANSWER_WORDS = 40
"""Of a sentence; an answer of more is an essay."""
LONGEST_TYPED = 300
"""Characters of an answer that may be a number, a day or a name."""
SHORT = 8
"""Words up to which what a conversation ends with is an answer alone; a longer text says what was asked again."""
SMALL = 12
"""Numbers that a question holds for other reasons, as in ``one of the two``."""
_LETTER = re.compile(r"[^\W_]")
_REFUSING = re.compile(
    r"(?:sorry|apolog\w+|unfortunately)\b.*|as an? (?:ai|language model)\b.*|(?:i|we)(?: am|['’]m|['’]re) (?:not|unable"
    r"|sorry|afraid)\b.*|(?:i|we) (?:can ?not|can['’]?t|could ?n['’o]t|do ?n['’o]t|was ?n['’o]t|have no|do not)\b.*"
    r"|(?:it is |it['’]s )?(?:not|im)possible to (?:determine|tell|say|answer|identify)\b.*"
    r"|.*\b(?:cannot|can not|can['’]t|could not) be (?:determined|answered|identified|verified|found|inferred)\b.*"
    r"|(?:there is )?(?:no|not enough|insufficient)"
    r" (?:answer|information|data|context|evidence|idea|image|result|match)\b.*"
    r"|the (?:image|picture|question|context|text|article)s? (?:does|do|did) not\b.*"
    r"|(?:the )?(?:answer|information) is (?:not|un)\b ?\w*.*|(?:http )?error\b.*|exception\b.*"
    r"|null|nil|nan|todo|fixme|placeholder|dummy|lorem ipsum.*",
    re.IGNORECASE | re.DOTALL,
)
"""What a title may say too: ``I Can't Stop Loving You``, ``No Match``, ``Sorry``, and Nan, a province of Thailand."""
_REFUSAL = re.compile(
    r"(?:no|not enough|insufficient) (?:answer|information|data|context|evidence|image|result)"
    r"(?: (?:found|available|given|provided))?"
    r"|(?:answer |value )?(?:unknown|unkown|uncertain|undefined"
    r"|unanswerable|unavailable|undetermined|unidentified)"
    r"(?: (?:to|at|from|in|as|for|by|person|artist|author|location|place|date|year|answer)\b.*)?"
    r"|not (?:available|applicable|known|found|sure"
    r"|specified|mentioned|provided|given|stated|answerable|clear|visible)\b.*"
    r"|n/?a|n\.a\.?|none|tbd|tba|tbc|xxx+"
    r"|(?:your |insert )(?:an? |the )?(?:answer|response|text)(?: here)?|(?:answer|text)(?: goes)? here"
    r"|(?:final )?answer ?[:\d]*|[-–—_.?…*/\\#\s]+|\[\]|\{\}|\(\)|\[(?:none|null|'')\]"
    r"|unbekannt|keine (?:antwort|angabe)|weiß (?:ich )?nicht.*|inconnue?|je ne (?:sais|peux) pas.*|desconocid[oa]"
    r"|no (?:sé|se sabe|disponible)|sconosciut[oa]|desconhecid[oa]|onbekend|неизвестно|не знаю|не указано|无法.*|無法.*"
    r"|不知道|未知|不详|抱歉.*|对不起.*|没有答案|不明|わかりません|알 수 없.*|غير معروف",
    re.IGNORECASE | re.DOTALL,
)
_WORD = re.compile(r"[^\W\d_][\w’']*")
_SMALL_WORDS = frozenset("a an the of to in on at for and or but nor with by from as".split())
_PATH = re.compile(
    r"(?:https?|file|ftp|s3|hf|gs)://\S+|www\.\S+|data:\w+/\S+|(?:[\w.~-]*/)+[\w.-]+\.\w{2,5}|[A-Za-z]:\\\S+"
    r"|/(?:[\w.-]+/)+[\w.-]*|[\w./~-]+\.(?:jpe?g|png|gif|webp|svg|tiff?|bmp|pdf|html?|json|txt|parquet)",
    re.IGNORECASE,
)
_OBJECT = re.compile(r"\s*(?:\{.*[:'\"].*\}|\[\s*[\{\"'].*\])\s*", re.DOTALL)
_SENTENCES = re.compile(r"(?<=[^\W\d_]{2})[.!?]\s+(?=[A-Z\u00c0-\u00de“\"])|[。！？](?=.)|\n\s*\n")
_QUOTED = re.compile(r"“[^“”]*”|\"[^\"]*\"|«[^«»]*»|‘[^‘’]*’|「[^「」]*」|《[^《》]*》")
_END = re.compile(r"\?(?!\w)|[？؟]")
_ASKING = r"(?:who|whom|whose|what|when|where|why|how|which|wer|was|wann|wo|warum|wie|qui|quand|où|quién|cuándo|dónde)"
_AUX = r"(?:is|was|are|were|does|did|do|has|have|had|can|will|would)\b"
_AND_ALSO = re.compile(
    rf"[^?]*?(?:^|\W){_ASKING}\b[^?]*?,? (?:and|und|et|y|as well as) (?:also )?"
    rf"(?:(?:in|on|at|by|from|for|of|to|with) )?"
    rf"(?:(?:what|how|why|whose) (?:\w+ ){{0,3}}?{_AUX}|(?:when|where) {_AUX}"
    rf"|which (?!he |she |it |they |later |also )(?:\w+ ){{1,3}}?{_AUX} (?!\w+ed\b)"
    r"|who (?:is|was|are|were) (?:the|its|his|her|their|it|he|she|they|this)\b|who (?:built|wrote|designed|painted|made"
    r"|founded|invented|discovered|directed|owns?|composed)\b (?:it|them|this)"
    r"|(?:wer|wann|warum|quand|pourquoi|quién|cuándo|dónde)\b)",
    re.IGNORECASE,
)
_CUT = re.compile(
    r"(?:\b(?:the|an?|and|or|which|whose|that|is|was|of the|in the|than)|[,(\[{«“:;]|[^\W\d_]-|…|\.\.\.)\s*$",
    re.IGNORECASE,
)
_LINES = re.compile(r"(?:^|\n|\s)\(?[A-D][.):]\s")
_HELD = re.compile(r"[^\W\d_]+")
_LATIN = re.compile("[a-zA-Z\u00c0-\u024f]+")
_UNPREFIXED = re.compile("[\u0590-\u06ff\u0900-\u0dff]+")
"""Scripts whose words take articles, prepositions and endings without a space."""
_PERCENT = re.compile(
    r"%\(\w+\)s|%s\b|\$\{\w+\}|\{\{[^{}]*\}\}|\{[\w .]+\}|\[[A-Z][A-Z_ ]+\]|<[A-Z_]{2,}>|\bXXX+\b|\b_{3,}\b"
)


def find_question_faults(question: str) -> Iterator[Fault]:
    """Yield what is wrong with a question by itself."""
    if not _LETTER.search(question):
        yield Fault("missing-question", repr(question[:SHOWN]))
        return
    if _PATH.fullmatch(question[:LONGEST_READ].strip()) or _OBJECT.fullmatch(question[:LONGEST_READ]):
        yield Fault("question-no-text", question[:SHOWN])
    elif len(question) < SHOWN and is_refusal(question.strip(" .!")):
        yield Fault("missing-question", question[:SHOWN])
    if gap := find_gap(question[:LONGEST_PROMPT]):
        yield Fault("unfilled-template", gap)
    if broken := find_encoding_fault(question):
        yield Fault("encoding", broken)
    if len(question) <= LONGEST_READ and len(question.split()) <= LONGEST_ASKED:
        if second := find_second_question(question):
            yield Fault("several-questions", second)
        if (cut := _CUT.search(question)) and not _END.search(question[-3:]):
            yield Fault("question-cut-off", f"it ends in {cut[0]!r}")


def find_gap(text: str) -> str:
    """Return an unfilled slot of a template, or ""."""
    found = _PERCENT.search(text)
    return found[0] if found else find_slot(text)


def find_second_question(question: str) -> str:
    """Return the words in which a text asks a second question, empty if it asks one.

    Clauses that tell of something (``the city where he was born and which lies in France``) ask nothing.
    """
    plain = _QUOTED.sub("“”", question)
    marks = [found for found in _END.finditer(plain) if _LETTER.search(plain[found.end() :])]
    after = plain[marks[0].end() :].strip() if marks else ""
    if after and _END.search(after) and not _LINES.search(after):
        return after[:SHOWN]
    if _LINES.search(plain):
        return ""
    also = _AND_ALSO.match(plain)
    return also[0][-SHOWN:] if also else ""


def find_answer_faults(question: str, answers: Sequence[str], said: bool = False) -> Iterator[Fault]:
    """Yield what is wrong with the answers to a question.

    Args:
        question: as asked.
        answers: the answer, then other accepted forms.
        said: whether the answer is what a conversation ends with, which may take more than one sentence.
    """
    question = question[:LONGEST_PROMPT]
    forms = tuple(dict.fromkeys(answer.strip()[:LONGEST_READ] for answer in answers[:MOST_FORMS]))
    if not any(forms):
        yield Fault("missing-answer", "an empty list" if not answers else repr(answers[0][:SHOWN]))
        return
    for form in filter(None, forms):
        yield from _find_form_faults(form)
    first = next(filter(None, forms))
    if not said and (len(_SENTENCES.split(first)) > 1 or len(first.split()) > MOST_ANSWER_WORDS):
        yield Fault("answer-too-long", first[:SHOWN])
    if _fold(first) == _fold(question) and _fold(first):
        yield Fault("answer-is-question", first[:SHOWN])
    elif not (said and len(first.split()) > SHORT) and (found := find_answer_leak(question, forms)):
        yield Fault("answer-in-question", found)


def _find_form_faults(form: str) -> Iterator[Fault]:
    bare = form.strip(" .!\"'“”")
    if is_refusal(bare):
        yield Fault("no-real-answer", form[:SHOWN])
    elif _PATH.fullmatch(form) or _OBJECT.fullmatch(form):
        yield Fault("answer-no-text", form[:SHOWN])
    if gap := find_gap(form):
        yield Fault("unfilled-template", gap)
    elif broken := find_encoding_fault(form):
        yield Fault("encoding", broken)


def is_refusal(answer: str) -> bool:
    """Return whether an answer declines to answer or is a placeholder; titles do neither.

    Frequency shows whether ``Nan`` or ``Sorry`` is a file's placeholder.
    """
    if not answer or _REFUSAL.fullmatch(answer):
        return True
    return not _is_title(answer) and _REFUSING.fullmatch(answer) is not None


def _is_title(text: str) -> bool:
    words = _WORD.findall(text)
    return not text.isupper() and all(
        word[0].isupper() and not (word.isupper() and len(word) > 1) and word != "NaN"
        for word in words
        if word not in _SMALL_WORDS
    )


def find_answer_leak(question: str, answers: Sequence[str]) -> str:
    """Return the words of a question that reveal its answer, or "".

    Looked for is each form as :func:`pipelines.checks.leakage.check_answer` does, inflected, and in another script. Of
    a question that offers its answers to choose from (``red or blue``, ``A. red B. blue``) nothing is told, nor of a
    small number that stands there as ``one`` or ``first``.
    """
    if _LINES.search(question):
        return ""
    for form in answers:
        if (len(form) < 2 and not form.isdigit()) or len(form) > LONGEST_TYPED:
            continue
        found = _find_typed(question, form) or _find_inflected(question, form) or _find_romanised(question, form)
        if found and not _is_choice(question, found):
            return found
    return ""


@lru_cache(maxsize=4096)
def type_foreign(form: str) -> Answer:
    """Return an answer that nothing proves, typed by its look alone."""
    typed = type_answer(form, "", "") if len(form) <= LONGEST_TYPED else None
    return typed or Answer(
        type="string", value=form, precision="", unit="", surface=form, aliases=(), key=fold_name(form)
    )


def _find_typed(question: str, form: str) -> str:
    answer = type_foreign(form)
    if answer.type == "number" and answer.value.isdigit() and int(answer.value) <= SMALL:
        # "One" stands for a thing more often than for a number.
        counted = (answer.value,) if answer.value == "1" else (answer.value, _SPELLED[int(answer.value)])
        return next((each for each in counted if compile_phrase(each).search(question.casefold())), "")
    result = check_answer(question, answer)
    return result.detail.rpartition(" as ")[2].strip("'\"") if result.outcome == "FAIL" else ""


_SPELLED = tuple("zero one two three four five six seven eight nine ten eleven twelve".split())


def _find_inflected(question: str, form: str) -> str:
    """Return the words of a question that are those of an answer with other endings.

    Of Latin letters only names count, with one letter of the ending exchanged at most: ``Warszawie`` for ``Warszawa``.
    """
    wanted = [word for word in _HELD.findall(form) if len(word) > 3]
    if not wanted:
        return ""
    asked = _HELD.findall(question)
    matched = [next((word for word in asked if _is_inflected(word, each)), "") for each in wanted]
    return " ".join(matched) if all(matched) else ""


def _is_inflected(word: str, form: str) -> bool:
    latin = _LATIN.fullmatch(form) is not None
    if latin and (len(form) < 6 or not (form[0].isupper() and word[0].isupper()) or is_common_word(fold_name(form))):
        return False
    one, other = word.casefold(), form.casefold()
    if _UNPREFIXED.fullmatch(form):
        return other in one
    shared = next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
                  min(len(one), len(other)))  # fmt: skip
    return shared >= max(4, len(other) - (1 if latin else 2)) and len(one) - shared <= 3


def _find_romanised(question: str, form: str) -> str:
    """Return the words of a question that spell an answer in another script; a letter in five may differ."""
    foreign = [word for word in _HELD.findall(question) if _is_foreign(word)]
    if _is_foreign(form) != bool(foreign):
        form, place = fold_name(anyascii(form)).replace(" ", ""), foreign or _HELD.findall(question)
        for word in place:
            spelled = fold_name(anyascii(word)).replace(" ", "")
            apart = len(form) // LETTERS_AN_ERROR if foreign else 0
            if len(form) > 3 and (count_edits(form, spelled, apart) <= apart or (len(form) > 5 and form in spelled)):
                return str(word)
    return ""


def _is_foreign(text: str) -> bool:
    """Say whether a text has letters of another script than Latin."""
    return any(not _LATIN.fullmatch(word) for word in _HELD.findall(text))


def find_named_answer(name: str, answers: Sequence[str]) -> str:
    """Return how the name or address of a picture tells an answer that is no number, empty if it does not."""
    for form in answers[:MOST_FORMS]:
        answer = type_foreign(form)
        if answer.type in ("name", "string") and len(form) > 3:
            result = check_file_names((name,), (), answer)
            if result.outcome == "FAIL":
                return result.detail
    return ""


def _is_choice(question: str, found: str) -> bool:
    """Say whether the answer is one of two or more that the question gives to choose from."""
    words = " ".join(split_bare_words(question))
    told = re.escape(" ".join(split_bare_words(found)))
    either = r"(?:or|oder|ou|или|还是|或)"
    near = rf"{told}(?: \w+){{0,3}} {either} |(?: |^){either}(?: \w+){{0,3}} {told}(?: |$)|{told}还是|还是{told}"
    return re.search(near, f" {words} ") is not None


def _fold(text: str) -> str:
    return " ".join(split_bare_words(text))


_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|U[0-9a-fA-F]{8}|[nrt](?=[A-Z\s]|$))")
_PERCENT_ESCAPE = re.compile(r"%20|%[C-Fc-f][0-9A-Fa-f]%[89ABab][0-9A-Fa-f]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_MARKUP = re.compile(
    r"</?(?:br|b|i|p|sup|sub|div|span|a|ref|em|strong|font|li|ul|td|tr|html)(?:\s[^<>]*)?/?>|\[\[[^\[\]]+\]\]|'''"
)
_LOST = re.compile(r"(?<=[^\W\d_])\?(?=[^\W\d_])|(?<!\S)\?{2,}(?!\S)|\ufffd|ï¿½")
_BYTES = re.compile(r"(?<!\w)b'[^']*'(?!\w)")
_UNSEEN = frozenset("\u200b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u00ad")
"""Format characters that no script needs between its letters, and marks that turn the direction of a text."""
_PLAIN = frozenset("\n\r\t")


def find_encoding_fault(text: str) -> str:
    """Return what is wrong with a text's encoding, for a reader; empty if nothing is found.

    Found are text of UTF-8 that was read as another encoding, letters that were lost, characters that are none, and
    escapes of JSON, HTML and addresses, with markup of pages. Addresses hold question marks and escapes rightly.
    """
    prose = " ".join(word for word in text.split(" ") if "://" not in word)
    return next((f"{name} {found!r}" for name, find in _FAULTS for found in find(prose)), "")


def _find_controls(text: str) -> Iterator[str]:
    for char in text:
        kind = unicodedata.category(char)
        if (kind == "Cc" and char not in _PLAIN) or kind in ("Co", "Cs") or char in _UNSEEN:
            yield char


def _find_bad(text: str) -> Iterator[str]:
    if not text.isascii() and is_bad(text):
        yield next((word for word in text.split() if is_bad(word)), text)[:60]


def _find_entities(text: str) -> Iterator[str]:
    yield from (found for found in _ENTITY.findall(text) if html.unescape(found) != found)


_FAULTS: tuple[tuple[str, Callable[[str], Iterator[str]]], ...] = (
    ("a lost letter", lambda text: (found[0] for found in _LOST.finditer(text))),
    ("a character that is none,", _find_controls),
    ("UTF-8 read as another encoding:", _find_bad),
    ("an escape", lambda text: (found[0] for found in _ESCAPE.finditer(text))),
    ("an escape of addresses", lambda text: (found[0] for found in _PERCENT_ESCAPE.finditer(text))),
    ("an HTML entity", _find_entities),
    ("markup", lambda text: (found[0] for found in _MARKUP.finditer(text))),
    ("bytes as text", lambda text: (found[0] for found in _BYTES.finditer(text))),
)


Pointing = Literal["plain", "meant", "implied", "none", "unknown"]
"""``plain``: it says so. ``meant``: a pronoun can mean nothing else. ``implied``: a definite noun may mean what is
seen. ``unknown``: in a language that is not known."""

_PICTURE = re.compile(
    r"\b(?:the|this|that|these|those|both|an?|in|on|from|each|given|your|two|which)"
    r"\s+(?:(?!best|motion)\w+ ){0,2}"
    r"(?:images?|pictures?|pics?|photos?|photographs?|illustrations?|screenshots?|snapshots?|scene)\b"
    r"|\b(?:shown|pictured|depicted|visible|displayed|image \d|img_\d"
    r"|bild(?:es|er)?|fotos?|foto|abbildung|abgebildete[nrsm]?|gezeigte[nrsm]?|photographie|imagen|imagem|immagine"
    r"|afbeelding|obraz\w*|zdj\w+|fotografia|fotografía|kuva\w*|resim\w*|gambar)\b"
    r"|изображ|фото|картин|снимк|рисунк|зображ|εικόν|φωτογραφ|صورة|الصورة|תמונה|चित्र|तस्वीर"
    r"|图|圖|照片|画面|畫面|影像|相片|画像|写真|이미지|사진|그림|ภาพ",
    re.IGNORECASE,
)
_THIS = re.compile(
    r"\b(?:this|these|here|above|below|diese[rsmn]?|hier|cette?|ces|celui-ci|este|esta|estos|estas|esto|est[ea]s"
    r"|quest[oaie]|deze|dit|ten|ta|to)\b|\bthat(?=\s*\?)|^(?:\w+ ){0,4}(?:is|are|was|were|of|does) that [a-z]"
    r"|\bthose (?!who|that|of|in\b)"
    r"|\bэт(?:от|а|о|и|ой|ого|ом|их|у)\b|\bцей|\bця|هذا|هذه|这|這|此|该|該|この|これ|이 |यह|इस|นี้",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"\b(?:the|what|which|who|whose|when|where|how|why|is|are|was|were|of|does|did)\b", re.IGNORECASE)
_HAN = re.compile("[\u4e00-\u9fff]")
_PRONOUN = re.compile(
    r"\b(?:it|he|she|they|him|them|her|one)\b|\b(?:is|was|are|were) (?:his|its|their)\b", re.IGNORECASE
)
_DEFINITE = re.compile(r"\bthe [a-z]", re.IGNORECASE)
_NAME = re.compile(r"(?<=[^\s.?!:;\"“”‘'(«]) +[\"“‘'(«]*(?!I\b)[A-Z\u00c0-\u00de]\w*|[“\"«][^”\"»]+[”\"»]|\b\d{3,4}\b")
_SUPERLATIVE = re.compile(
    r"\b(?:most|[a-z]{3,}est|first|world|earth|universe|solar)\b(?<!forest)(?<!west)", re.IGNORECASE
)


def judge_pointing(text: str) -> Pointing:
    """Say how a question points to its picture, in its own words and without a proof.

    Our own questions are held to more (:func:`pipelines.checks.descriptors.check_reference`). Here a demonstrative is
    enough (``this bird``), and in a question that names nothing a pronoun or a definite noun (``the man``), since they
    could mean nothing else.
    """
    if any(True for _ in find_references(text)) or _PICTURE.search(text) or _points_by_this(text):
        return "plain"
    if _HAN.search(text):
        return "none"
    if not _ENGLISH.search(text):
        return "unknown"
    if _NAME.search(text):
        return "none"
    if _PRONOUN.search(text):
        return "meant"
    return "implied" if _DEFINITE.search(text) and not _SUPERLATIVE.search(text) else "none"


def _points_by_this(text: str) -> bool:
    """Say whether a demonstrative points; of an English text those of other languages do not count."""
    english = _ENGLISH.search(text) is not None
    return any(not english or found[0].lower() not in _FOREIGN for found in _THIS.finditer(text))


_FOREIGN = frozenset("ten ta to dit este esta hier".split())


LEAST_SIDE = 48
"""Pixels of the shorter side; less is an icon or a thumbnail of one."""
LEAST_SPREAD = 20
"""Levels (of 255) of the standard deviation of a channel, below which a picture without edges shows nothing."""
_ENDINGS = {"jpg": "jpg", "jpeg": "jpg", "jpe": "jpg", "jfif": "jpg", "png": "png", "gif": "gif", "webp": "webp"}
_OTHERS = frozenset("svg bmp tif tiff avif heic ico pdf html htm txt json".split())


def find_picture_faults(data: bytes, names: Sequence[str]) -> Iterator[Fault]:
    """Yield what is wrong with a picture.

    Args:
        data: the file.
        names: its name, path or address; empty if it has none.
    """
    try:
        header = read_header(data)
        pixels = np.asarray(open_pixels(data, max_side=SIDE))
    except RecordFailed as error:
        yield Fault("unreadable-image", str(error))
        return
    told = find_lying_ending(data, names)
    if told:
        yield Fault("lying-extension", told)
    if min(header.width, header.height) < LEAST_SIDE:
        yield Fault("tiny-image", f"{header.width}x{header.height}")
    elif (telling := find_telling_word(names)) or measure_plainness(pixels).edges >= MIN_EDGES:
        simple = check_simple(data, names)
        if telling or not simple.passed:
            yield Fault("simple-image", simple.detail)
    elif pixels.std(axis=(0, 1)).max() < LEAST_SPREAD:
        # Without an edge a picture may still be one, out of focus.
        yield Fault("blank-image", "there is next to nothing to see")


def find_name_faults(name: str) -> Iterator[Fault]:
    """Yield what the name or address of a picture that cannot be opened tells."""
    if telling := find_telling_word((name,)):
        yield Fault("simple-image", f"{telling!r} in its name")


def find_lying_ending(data: bytes, names: Sequence[str]) -> str:
    """Return how the ending of a picture's name differs from what the file is, empty if it does not."""
    real = find_extension(data)
    for name in names:
        ending = PurePosixPath(name.partition("?")[0]).suffix.removeprefix(".").casefold()
        if (ending in _ENDINGS and _ENDINGS[ending] != real) or ending in _OTHERS:
            return f"{PurePosixPath(name).name[-60:]} is {real}"
    return ""
