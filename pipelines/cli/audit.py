"""``synth audit FILE ...``: find the defects of anybody's visual QA files, and what the files share.

Every check is one that needs no corpus. A file is read once, row by row; in memory stay the indexes of
:mod:`pipelines.checks.overlaps`, and of each defect the first rows.

The page of ``--html`` shows these rows with their pictures. Files are hostile: the template escapes every value, the
page's Content-Security-Policy forbids scripts and foreign addresses, and of a picture only a JPEG that was made here is
shown.
"""

import base64
import hashlib
import io
import itertools
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from jinja2 import Environment, FileSystemLoader
from rich.table import Table
from rich.text import Text

from pipelines.agent.agreement import wilson_interval
from pipelines.agent.dialogues import find_dialogue_faults, is_conversation, is_supported, list_tools, say_last
from pipelines.checks.foreign import (
    Fault,
    find_answer_faults,
    find_name_faults,
    find_named_answer,
    find_picture_faults,
    find_question_faults,
    judge_pointing,
    type_foreign,
)
from pipelines.checks.leakage import LeakIndex, build_leak_index
from pipelines.checks.overlaps import AskedRow, Place, Repeat, Repeats, Shown, digest, make_skeleton
from pipelines.corpus.layouts import (
    REMOTE,
    ForeignQuestion,
    NamedPicture,
    PictureFolder,
    UnreadRow,
    read_layout,
    read_questions,
)
from pipelines.errors import ConfigError, RecordFailed
from pipelines.files import write_text
from pipelines.pictures import open_pixels

IDS_KEPT = 1000
"""Ids of a defect's rows that a report names."""
MAPPED = ("question", "answer", "answers", "image", "images", "messages", "id", "entity", "language")
"""Usual columns that a user may say the place of."""
FINDINGS = 12
"""Rows of a defect that are kept with what was found, for the page."""
EXAMPLES = 5
"""Ids of them that the table shows."""
MOST, SURELY, LEAST = 0.1, 0.05, 8
"""Share of a file that one answer or one template may have; the share that it surely has, by the lower end of its 95%
interval, and the rows from which it counts."""
LEAST_CALLED = 20
"""Tools that conversations call, each counted once a conversation, from which one that is called once is a slip."""
POINTING, IMPLYING = 0.5, 0.9
"""Shares of a file's questions that point to their picture from which one that does not, or only implies it, is a
defect; in other files questions name what they ask about, as WebQA's do."""
DEFECTS: Final[dict[str, str]] = {
    "missing-question": "no question text, or a row that holds no question",
    "question-no-text": "the question is a path, an address or an object",
    "question-cut-off": "the question ends in the middle",
    "several-questions": "more than one question in one",
    "no-reference": "the question does not point to its picture, as others of the file do",
    "missing-answer": "no answer",
    "no-real-answer": "the answer is a refusal, or stands where one should be put",
    "answer-no-text": "the answer is a path, an address or an object",
    "answer-too-long": "the answer is longer than a sentence",
    "answer-is-question": "the answer is the question",
    "answer-in-question": "the question says an answer, in whatever writing",
    "unfilled-template": "a slot of a template was not filled",
    "encoding": "text in the wrong encoding, escapes, markup, code points that are no characters",
    "missing-image": "no picture: none named, or a local file that is not there",
    "unreadable-image": "no whole JPEG, PNG, GIF or WebP picture",
    "lying-extension": "the picture's name says another format than the file is",
    "tiny-image": "a picture of fewer than 48 pixels on its shorter side",
    "blank-image": "a picture with next to nothing to see",
    "simple-image": "an icon, a flag, a map, a coat of arms, a card of text or a drawing",
    "answer-in-image-name": "the name or address of the picture says an answer",
    "duplicate-id": "same id as an earlier row",
    "duplicate-question": "same question, pictures and messages as an earlier row",
    "contradiction": "same question and pictures as an earlier row, another answer",
    "near-duplicate-question": "nearly the question of another row, with its picture or its rare answer",
    "duplicate-image": "a picture that an earlier row with another question has",
    "like-image": "a copy of an earlier row's picture: cropped, mirrored or saved again",
    "answer-too-often": "an answer that more than a tenth of the rows have",
    "template-too-often": "a wording that more than a tenth of the rows have, but for names and its middle",
    "prompt-example": "it is about an entity of the list that was given",
    "placeholder-mismatch": "the number of <image> in the text is not the number of pictures",
    "control-token": "a control token or another medium's placeholder in the text",
    "roles-out-of-order": "turns in an order, or of a role, that trainers refuse",
    "missing-answer-turn": "a conversation that does not end with an answer",
    "empty-turn": "a turn without text",
    "bad-tool-call": "a tool call that is no JSON object with a name and arguments",
    "unpaired-tag": "a tag that is opened and not closed, or closed and not opened",
    "other-final-answer": "the conversation ends with another answer than the row's",
    "unsupported-answer": "a conversation's answer is a name that no tool returned, as others' are",
    "unknown-tool": "a tool that no other conversation of the file calls",
    "overlap-question": "a question of an earlier file, or nearly one, with its picture or its answer",
    "overlap-picture": "a picture of an earlier file, or a copy of one",
    "overlap-entity": "an entity of an earlier file",
    "overlap-fact": "an entity and an answer that stand together in an earlier file",
    "overlap-answer": "a rare answer of an earlier file",
}
UNCHECKED: Final[dict[str, str]] = {
    "address": "pictures that are addresses: none is fetched",
    "no-folder": "pictures named by an id, without a folder to look in: give --images",
    "absent": "pictures none of which lies beside the file: give --images",
    "no-entity": "questions whose entity the file does not say: not compared by entity and fact",
    "language": "questions in a language whose words for a picture are not known",
    "not-pointing": "questions that do not point to a picture, as most of the file: told by what they name",
    "picture-less": "questions that are asked without a picture, by their layout",
}


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """Options of an audit."""

    images: Path | None = None
    """Folder of the pictures, or WebQA's ``imgs.tsv``; None: they lie beside the file."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Usual names of columns with those of the files."""
    names: tuple[str, ...] = ()
    """Entities that no question may be about, such as the examples of a prompt."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One row with a defect."""

    row: Place
    detail: str
    other: Place | None = None
    """The row that it repeats."""


@dataclass(frozen=True, slots=True)
class Defect:
    """One kind of defect in one file."""

    name: str
    file: Path
    rows: int
    examples: tuple[str, ...]
    """Ids of the first rows that have it."""
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Unchecked:
    """What could not be checked in one file, and how often."""

    name: str
    file: Path
    count: int


@dataclass(frozen=True, slots=True)
class AuditedFile:
    """One file."""

    path: Path
    layout: str
    rows: int
    """Questions: a row may hold several."""
    images: int
    """Distinct pictures by content, name or address."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found."""

    files: tuple[AuditedFile, ...]
    defects: tuple[Defect, ...]
    unchecked: tuple[Unchecked, ...]

    @property
    def rows(self) -> int:
        """Questions of all files."""
        return sum(file.rows for file in self.files)

    @property
    def passed(self) -> bool:
        """Whether there are rows and none has a defect."""
        return self.rows > 0 and not self.defects


def read_options(images: Path | None, columns: Iterable[str], names: Path | None) -> AuditOptions:
    """Return the options of a command line.

    Raises:
        ConfigError: if a folder or a list is not there, or a column is not named as ``question=column``.
    """
    if images is not None and not images.exists():
        raise ConfigError(f"audit --images {images}: no such folder")
    pairs = [column.partition("=") for column in columns]
    for name, equals, place in pairs:
        if not (equals and place and name in MAPPED):
            raise ConfigError(
                f"audit --map {name}{equals}{place}: give one of {', '.join(MAPPED)}, then = and a column"
            )
    try:
        listed = names.read_text("utf-8").splitlines() if names is not None else []
    except (OSError, ValueError) as error:
        raise ConfigError(f"audit --names {names}: cannot be read: {error}") from error
    return AuditOptions(
        images, {name: place for name, _, place in pairs}, tuple(line.strip() for line in listed if line.strip())
    )


def audit_files(paths: Iterable[Path], options: AuditOptions | None = None) -> AuditReport:
    """Read files once, in order, and count their defects and what they share with those before them.

    Raises:
        ConfigError: if a file is missing, cannot be read, or holds no question.
    """
    options = options or AuditOptions()
    repeats = Repeats()
    audits = []
    for number, path in enumerate(paths):
        audit = FileAudit(number, path, options, repeats)
        audit.read()
        audits.append(audit)
    for repeat in repeats.find_near():
        audits[repeat.row.file].note_repeat(repeat)
    return AuditReport(
        tuple(audit.describe() for audit in audits),
        tuple(defect for audit in audits for defect in audit.list_defects()),
        tuple(unchecked for audit in audits for unchecked in audit.list_unchecked()),
    )


@dataclass(slots=True)
class Noted:
    """The rows of one defect: how many, and the first of them."""

    count: int = 0
    last: int = -1
    findings: list[Finding] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)

    def add(self, finding: Finding) -> None:
        """Count a row, once however often it is named in a row."""
        if finding.row.number == self.last:
            return
        self.last = finding.row.number
        self.count += 1
        if len(self.ids) < IDS_KEPT:
            self.ids.append(finding.row.id)
        if len(self.findings) < FINDINGS:
            self.findings.append(finding)

    def merge(self, other: "Noted") -> None:
        """Take over the rows of another."""
        self.count += other.count
        self.ids = [*self.ids, *other.ids][:IDS_KEPT]
        self.findings = [*self.findings, *other.findings][:FINDINGS]


@dataclass(slots=True)
class Tally:
    """How often each value of a file occurs, with the first rows of each."""

    rows: defaultdict[int, list[Place]] = field(default_factory=lambda: defaultdict(list))
    more: Counter[int] = field(default_factory=Counter)
    """Rows beyond those that are kept."""
    total: int = 0

    def add(self, value: str, place: Place) -> None:
        """Count a value of a row."""
        self.total += 1
        key = digest(value)
        if len(self.rows[key]) < IDS_KEPT:
            self.rows[key].append(place)
        else:
            self.more[key] += 1

    def list_frequent(self) -> Iterator[Noted]:
        """Yield the rows of each value that too many have."""
        for key, places in self.rows.items():
            count = len(places) + self.more[key] if key in self.more else len(places)
            share, surely = count / self.total, wilson_interval(count, self.total)[0]
            if count >= LEAST and share > MOST and surely > SURELY:
                yield self._note(key, count)

    def list_single(self) -> Iterator[Noted]:
        """Yield the row of each value that occurs once."""
        yield from (self._note(key, 1) for key, places in self.rows.items() if len(places) == 1)

    def _note(self, key: int, count: int) -> Noted:
        places = self.rows[key]
        findings = [Finding(place, f"{count} of {self.total}") for place in places[:FINDINGS]]
        return Noted(count, places[-1].number, findings, [place.id for place in places])


@dataclass(slots=True)
class FileAudit:
    """One file being audited."""

    number: int
    path: Path
    options: AuditOptions
    repeats: Repeats
    layout: str = ""
    rows: int = 0
    opened: int = 0
    """Pictures that were found."""
    noted: defaultdict[str, Noted] = field(default_factory=lambda: defaultdict(Noted))
    unchecked: Counter[str] = field(default_factory=Counter)
    pointing: Counter[str] = field(default_factory=Counter)
    answers: Tally = field(default_factory=Tally)
    templates: Tally = field(default_factory=Tally)
    tools: Tally = field(default_factory=Tally)
    supported: int = 0
    """Conversations whose answer is a name that a tool returned."""

    def read(self) -> None:
        """Read the file and note what each row shows."""
        columns = dict(self.options.columns)
        self.layout = "columns" if columns else read_layout(self.path)
        unread = ""
        for number, question in enumerate(read_questions(self.path, self.layout, columns or None)):
            if isinstance(question, UnreadRow):
                unread = unread or question.why
                self.note(Place(self.number, number, question.key), Fault("missing-question", question.why))
                continue
            self.rows += 1
            self._read_question(Place(self.number, number, question.id), question)
        if not self.rows:
            raise ConfigError(
                f"audit {self.path}: {f'no row has a question: {unread}' if unread else 'it has no rows'}"
            )
        self._settle()

    def note(self, place: Place, fault: Fault, other: Place | None = None) -> None:
        """Note a defect of a row."""
        self.noted[fault.name].add(Finding(place, fault.detail, other))

    def note_repeat(self, repeat: Repeat) -> None:
        """Note that a row repeats another."""
        self.note(repeat.row, Fault(repeat.name, repeat.detail), repeat.other)

    def _read_question(self, place: Place, question: ForeignQuestion) -> None:
        talk = is_conversation(question)
        ends = not talk or bool(say_last(question.messages))
        faults = itertools.chain(
            find_question_faults(question.question),
            find_answer_faults(question.question, question.answers, talk and len(question.answers) == 1)
            if ends
            else (),
            find_dialogue_faults(question),
            self._find_listed(question),
        )
        for fault in faults:
            self.note(place, fault)
        if talk:
            self._read_talk(place, question)
        shown = tuple(self._look(place, question))
        self._judge_pointing(place, question)
        answer = type_foreign(question.answers[0]).key if question.answers else ""
        if answer:
            self.answers.add(answer, place)
        self.templates.add(make_skeleton(question.question), place)
        self.unchecked["no-entity"] += not question.entity
        texts = question.texts if question.has_messages else ()
        entity = question.entity or question.qid
        row = AskedRow(place, question.question, question.answers, entity, shown, texts)
        for repeat in self.repeats.find(row):
            self.note_repeat(repeat)

    def _read_talk(self, place: Place, question: ForeignQuestion) -> None:
        """Note what of a conversation only the whole file can judge."""
        for tool in list_tools(question):
            self.tools.add(tool, place)
        supported = is_supported(question)
        self.supported += supported is True
        if supported is False:
            self.note(place, Fault("unsupported", question.answers[0]))

    def _find_listed(self, question: ForeignQuestion) -> Iterator[Fault]:
        if self.options.names:
            for text in (question.entity, question.question, *question.answers):
                for leak in index_names(self.options.names).find(text):
                    if leak.kind != "partial":
                        yield Fault("prompt-example", leak.name)

    def _look(self, place: Place, question: ForeignQuestion) -> Iterator[Shown]:
        """Open a row's pictures, note what is wrong with them, and yield those that the question is asked with."""
        asked = question.asked_with
        if not question.pictures:
            if question.pictureless:
                self.unchecked["picture-less"] += 1
            else:
                self.note(place, Fault("missing-image", "none is named"))
        for picture in question.pictures:
            if told := find_named_answer(picture.name, question.answers):
                self.note(place, Fault("answer-in-image-name", told))
            data, found = self._open(place, picture)
            if data is None:
                for fault in find_name_faults(picture.name):
                    self.note(place, fault)
                mark = picture.name
            else:
                self.opened += 1
                mark = hashlib.sha256(data).hexdigest()
                faults = list(find_picture_faults(data, tuple(filter(None, dict.fromkeys((picture.name, found))))))
                for fault in faults:
                    self.note(place, fault)
                if {fault.name for fault in faults} & {"blank-image", "unreadable-image", "tiny-image"}:
                    data = b""
            if mark and picture in asked:
                yield Shown(mark, data or b"")

    def _open(self, place: Place, picture: NamedPicture) -> tuple[bytes | None, str]:
        """Return a picture's bytes and its file's name; None for one that is not there, or cannot be looked for."""
        if picture.content:
            return picture.content, ""
        if not picture.name:
            self.note(place, Fault("missing-image", "a picture without a name"))
            return None, ""
        found = open_named(picture.name, self.path.parent, self.options.images)
        if found[0] is not None:
            return found
        if picture.name.startswith(REMOTE):
            self.unchecked["address"] += 1
        elif self.options.images is None and not PurePosixPath(picture.name).suffix:
            self.unchecked["no-folder"] += 1
        elif self.options.images is None:
            self.note(place, Fault("absent", picture.name))
        else:
            self.note(place, Fault("missing-image", picture.name))
        return found

    def _judge_pointing(self, place: Place, question: ForeignQuestion) -> None:
        if question.pictureless or not question.question.strip():
            return
        points = judge_pointing(question.question)
        self.pointing[points] += 1
        if points in ("none", "implied"):
            self.note(place, Fault(f"pointing-{points}", question.question[:200]))

    def _settle(self) -> None:
        """Decide what only the whole file can tell."""
        absent = self.noted.pop("absent", Noted())
        if self.opened and absent.count:
            self.noted["missing-image"].merge(absent)
        elif absent.count:
            self.unchecked["absent"] += absent.count
        self.unchecked["language"] += self.pointing["unknown"]
        known = self.pointing.total() - self.pointing["unknown"]
        none, implied = (self.noted.pop(f"pointing-{name}", Noted()) for name in ("none", "implied"))
        if known and (known - none.count) / known >= POINTING:
            self.noted["no-reference"].merge(none)
            if self.pointing["plain"] / known >= IMPLYING:
                self.noted["no-reference"].merge(implied)
        else:
            self.unchecked["not-pointing"] += none.count
        for name, tally in (("answer-too-often", self.answers), ("template-too-often", self.templates)):
            for noted in tally.list_frequent():
                self.noted[name].merge(noted)
            tally.rows.clear()
        self._settle_talks()

    def _settle_talks(self) -> None:
        unsupported = self.noted.pop("unsupported", Noted())
        if unsupported.count <= MOST * (self.supported + unsupported.count):
            self.noted["unsupported-answer"].merge(unsupported)
        for noted in self.tools.list_single() if self.tools.total >= LEAST_CALLED else ():
            self.noted["unknown-tool"].merge(noted)
        self.tools.rows.clear()

    def describe(self) -> AuditedFile:
        """Return what the file is."""
        return AuditedFile(self.path, self.layout, self.rows, self.repeats.count_pictures(self.number))

    def list_defects(self) -> Iterator[Defect]:
        """Yield the file's defects in the order of the list."""
        for name in DEFECTS:
            noted = self.noted.get(name)
            if noted and noted.count:
                yield Defect(name, self.path, noted.count, tuple(noted.ids), tuple(noted.findings))

    def list_unchecked(self) -> Iterator[Unchecked]:
        """Yield what could not be checked."""
        yield from (Unchecked(name, self.path, self.unchecked[name]) for name in UNCHECKED if self.unchecked[name])


def open_named(name: str, beside: Path, images: Path | None) -> tuple[bytes | None, str]:
    """Return the bytes of a picture by its name, and the name of its file; None without such a file.

    Without a folder of pictures only files below the audited file's own folder are opened, by their names.
    """
    folder = open_folder(images) if images is not None else NamesAlone(beside)
    for written in dict.fromkeys((name, PurePosixPath(name).name)):
        try:
            found = None if folder.root.suffix == ".tsv" else folder.find(written)
            data = folder.read(NamedPicture(written))
        except (OSError, ValueError):
            # A name that no file can have, or a file that nobody may read: the caller says that it is missing.
            continue
        if data is not None:
            return data, found.name if found else ""
    return None, ""


class NamesAlone(PictureFolder):
    """Pictures beside a file, found by their names: what else its folder holds is not listed."""

    @cached_property
    def _by_stem(self) -> dict[str, Path]:
        return {}


@lru_cache(maxsize=1)
def open_folder(images: Path) -> PictureFolder:
    """Return a folder of pictures; cached, as it lists its files once."""
    return PictureFolder(images)


@lru_cache(maxsize=1)
def index_names(names: tuple[str, ...]) -> LeakIndex:
    """Return an index of listed entities."""
    return build_leak_index([(name,) for name in names])


def render_audit(report: AuditReport) -> Table:
    """Return the defects as a table, with counts, shares and the first ids, then what could not be checked."""
    title = "; ".join(
        f"{each.path}: {each.rows} rows of {each.layout}, {each.images} pictures" for each in report.files
    )
    table = Table("file", "defect", "rows", "share", "what it is", "first ids", title=show_plain(title))
    rows = {each.path: each.rows for each in report.files}
    for defect in report.defects:
        share = f"{100 * defect.rows / rows[defect.file]:.1f}%"
        ids = show_plain(", ".join(defect.examples[:EXAMPLES]))
        table.add_row(show_plain(defect.file.name), defect.name, str(defect.rows), share, DEFECTS[defect.name], ids)
    if not report.defects:
        table.add_row("", "none", "0", "0.0%", "", "")
    # Last stands that no picture was looked at, as without it the file passes.
    for each in sorted(report.unchecked, key=lambda unchecked: unchecked.name == "absent"):
        table.add_row(show_plain(each.file.name), "not checked", str(each.count), "", UNCHECKED[each.name], "")
    return table


def show_plain(text: str) -> Text:
    """Return a text for a terminal, with a mark for each character that could steer it or that it cannot write."""
    return Text("".join("\ufffd" if unicodedata.category(each) in STEERING else each for each in text))


STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")


SIDE, QUALITY = 220, 60
"""Pixels of a picture's longer side on the page, and its JPEG quality."""
PICTURES = 4
"""Pictures of a row that are shown."""
LONGEST_SHOWN = 400
Key = tuple[int, int]
"""A row: number of the file and of the question in it."""


@dataclass(frozen=True, slots=True)
class RowCard:
    """A row as the page shows it."""

    id: str
    question: str
    answers: str
    pictures: tuple[str, ...]
    """``data:`` addresses."""


@dataclass(frozen=True, slots=True)
class FindingCard:
    """A row with what was found in it, and the row that it repeats."""

    detail: str
    row: RowCard
    other: RowCard | None


@dataclass(frozen=True, slots=True)
class DefectSection:
    """One kind of defect."""

    name: str
    meaning: str
    rows: int
    share: float
    """Percent of the file."""
    file: Path
    cards: tuple[FindingCard, ...]


def write_audit_page(report: AuditReport, options: AuditOptions, out: Path) -> None:
    """Write the page; the files are read once more, for the rows that it shows."""
    rows = dict(_read_cards(report, options))
    counts = {file.path: file.rows for file in report.files}
    sections = [_make_section(defect, counts[defect.file], rows) for defect in report.defects]
    template = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True).get_template(
        "audit.html.j2"
    )
    page = template.render(report=report, sections=sections, meanings=UNCHECKED)
    # A lone surrogate of a file can be written in no encoding.
    write_text(out, page.encode("utf-8", "replace").decode("utf-8"))


def _make_section(defect: Defect, rows: int, cards: Mapping[Key, RowCard]) -> DefectSection:
    found = (
        FindingCard(
            finding.detail,
            cards.get((finding.row.file, finding.row.number), RowCard(finding.row.id, "", "", ())),
            cards.get((finding.other.file, finding.other.number)) if finding.other else None,
        )
        for finding in defect.findings
    )
    return DefectSection(
        defect.name, DEFECTS[defect.name], defect.rows, 100 * defect.rows / rows, defect.file, tuple(found)
    )


def _read_cards(report: AuditReport, options: AuditOptions) -> Iterator[tuple[Key, RowCard]]:
    """Yield the rows that defects name."""
    findings = chain.from_iterable(defect.findings for defect in report.defects)
    places = chain.from_iterable((finding.row, finding.other) for finding in findings)
    wanted = {(place.file, place.number) for place in places if place is not None}
    for number, file in enumerate(report.files):
        left = {row for of, row in wanted if of == number}
        if not left:
            continue
        for row, question in enumerate(read_questions(file.path, file.layout, dict(options.columns) or None)):
            if row in left and isinstance(question, ForeignQuestion):
                yield (number, row), _make_card(question, file.path.parent, options.images)
            left.discard(row)
            if not left:
                break


def _make_card(question: ForeignQuestion, beside: Path, images: Path | None) -> RowCard:
    return RowCard(
        question.id,
        question.question[:LONGEST_SHOWN],
        " · ".join(question.answers)[:LONGEST_SHOWN],
        tuple(_list_thumbnails(question.pictures[:PICTURES], beside, images)),
    )


def _list_thumbnails(pictures: Iterable[NamedPicture], beside: Path, images: Path | None) -> Iterator[str]:
    for picture in pictures:
        data = picture.content or open_named(picture.name, beside, images)[0]
        if data:
            try:
                small = open_pixels(data, max_side=SIDE)
            except RecordFailed:
                # The page says that it cannot be opened in the words of the defect.
                continue
            target = io.BytesIO()
            small.save(target, "JPEG", quality=QUALITY)
            yield "data:image/jpeg;base64," + base64.b64encode(target.getvalue()).decode("ascii")
