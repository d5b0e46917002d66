"""The layouts in which data sets are published, each written as its own publishers write it.

Facts: LiveVQA's ``News/benchmark.json``, InfoSeek's annotation files, WebQA's first release, MMSearch-R1's FVQA rows,
VSearcher's exam file and its converter, OpenSearch-VL's ``dataset_info.json``, verl's ``RLHFDataset``.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.audit.bank import draw_photograph, encode, make_question

Turns = list[tuple[str, str]]
TOOLS = json.dumps([{"name": name, "description": text, "parameters": {
    "type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}}
    for name, text in (("text_search", "Search the web."), ("image_search", "Search by a picture."))])  # fmt: skip
RAW = "https://raw.githubusercontent.com/image-storage-rl/exam/main/"


@dataclass
class Row:
    """One question with its picture, before it is written in a layout."""

    number: int
    question: str
    answer: str
    picture: bytes | None
    name: str
    """Of the picture's file."""
    mark: str = ""
    """Id; empty: made of the place in the file."""
    placeholder: str = "<image>"
    second: str = ""
    """Answer to the second question, where a layout has two a row; empty: one of its own."""
    edits: list[Callable[[Turns], Turns]] = field(default_factory=list)
    """Changes of the conversation, made after it was written."""


def make_rows(start: int, count: int) -> list[Row]:
    return [
        Row(number, *make_question(number), encode(draw_photograph(number)), f"{30000000 + number * 7919}.jpg")
        for number in range(start, start + count)
    ]


@dataclass(frozen=True)
class Layout:
    name: str
    file: str
    write: Callable[[Path, Sequence[Row]], None]
    mark: Callable[[int, Row], str]
    kind: str
    """files: pictures lie beside the file; bytes: they are in it; talk: conversations, pictures beside the file."""


def write_pictures(folder: Path, rows: Sequence[Row]) -> None:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for row in rows:
        if row.picture is not None:
            (folder / "images" / row.name).write_bytes(row.picture)


def write_json(path: Path, rows: object) -> None:
    path.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")


def write_lines(path: Path, rows: Sequence[object]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def mark_livevqa(number: int, row: Row) -> str:
    return row.mark or f"0_20250507{row.number:012d}"


def write_livevqa(path: Path, rows: Sequence[Row]) -> None:
    def describe(row: Row, question: str, answer: str, others: Sequence[str]) -> dict:
        options = sorted({answer, *others})
        letters = "ABCDEFG"
        return {
            "question": question, "question_type": "location",
            "options": [f"{letters[place]}. {option}" for place, option in enumerate(options)],
            "Ground_Truth": letters[options.index(answer)], "Ground_Truth_List": [answer],
            "img_path": row.name, "img_url": f"https://media.example.org/stellar/prod/{row.number}.jpg?q=w_1110",
        }  # fmt: skip

    written = []
    for place, row in enumerate(rows):
        second, answer = make_question(row.number + 200)
        others = [make_question(row.number + 400 + step)[1] for step in (1, 2, 3)]
        written.append({
            "id": mark_livevqa(place, row), "img_path": row.name,
            "level1_qa": describe(row, row.question, row.answer, others),
            "level2_qa": describe(row, second, row.second or answer, others),
            "source": "CNN World", "time": f"2025-04-{1 + row.number % 28:02d}T12:18:35.397Z",
        })  # fmt: skip
    write_json(path, written)


def mark_fvqa(number: int, row: Row) -> str:
    return row.mark or f"fvqa_train_{1000 + row.number}"


def describe_fvqa(place: int, row: Row) -> dict:
    return {
        "prompt": [{"content": row.question, "role": "user"}],
        "reward_model": {"candidate_answers": "[]", "ground_truth": row.answer, "style": "rule"},
        "data_source": "mmsearch_r1/fvqa_train", "image_urls": None, "data_id": mark_fvqa(place, row),
        "category": "search_required",
    }  # fmt: skip


def write_fvqa_json(path: Path, rows: Sequence[Row]) -> None:
    write_json(path, [describe_fvqa(place, row) | {"images": [f"images/{row.name}"]} for place, row in enumerate(rows)])


def write_fvqa_pq(path: Path, rows: Sequence[Row]) -> None:
    written = [
        describe_fvqa(place, row) | {"images": [{"bytes": row.picture, "path": None}]} for place, row in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(written), path)


def mark_infoseek(number: int, row: Row) -> str:
    return row.mark or f"infoseek_train_{row.number:08d}"


def write_infoseek(path: Path, rows: Sequence[Row]) -> None:
    write_lines(path, [{
        "data_id": mark_infoseek(place, row), "image_id": Path(row.name).stem, "question": row.question,
        "answer": [row.answer], "answer_eval": [row.answer], "data_split": "train",
    } for place, row in enumerate(rows)])  # fmt: skip


def mark_webqa(number: int, row: Row) -> str:
    return row.mark or f"d5bc1c280dba11ecb1e8{row.number:012d}"


def write_webqa(path: Path, rows: Sequence[Row]) -> None:
    write_json(path, {mark_webqa(place, row): {
        "Q": f'"{row.question}"', "A": [f'"{row.answer}"'], "topic": "0", "split": "train", "Qcate": "Others",
        "Guid": mark_webqa(place, row), "Keywords_A": row.answer, "txt_posFacts": [], "txt_negFacts": [],
        "img_negFacts": [], "img_posFacts": [{
            "image_id": int(Path(row.name).stem), "title": f"File {row.number} (cropped)", "caption": "A view",
            "url": f"https://commons.wikimedia.org/wiki/File:View_{row.number}.jpg",
            "imgUrl": f"https://upload.wikimedia.org/wikipedia/commons/{row.number}.jpg",
        }],
    } for place, row in enumerate(rows)})  # fmt: skip


def mark_place(number: int, row: Row) -> str:
    return str(number)


def link(row: Row) -> str:
    """Return the address of a picture; empty where there is none, for what lies at an address nobody here can know."""
    return "" if row.picture is None else RAW + row.name


def write_exam(path: Path, rows: Sequence[Row]) -> None:
    write_lines(path, [{"question": row.question, "image_path": link(row), "answer": row.answer} for row in rows])


def write_verl(path: Path, rows: Sequence[Row]) -> None:
    written = [{
        "data_source": "visual_search", "prompt": [{"role": "user", "content": f"{row.placeholder}\n{row.question}"}],
        "images": [{"bytes": row.picture, "path": None}], "ability": "search",
        "reward_model": {"style": "rule", "ground_truth": row.answer},
        "extra_info": {"index": place, "split": "train", "question": row.question, "answer": row.answer},
        "id": mark_verl(place, row),
    } for place, row in enumerate(rows)]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(written), path)


def mark_verl(number: int, row: Row) -> str:
    return row.mark or f"train-{row.number:05d}"


def talk(row: Row) -> Turns:
    """Return a search for the answer: one call, what it found, the answer."""
    call = json.dumps({"name": "text_search", "arguments": {"query": f"records of case {row.number * 31}"}})
    found = f"[1] Regional archive, sheet {row.number * 17}: the entry names {row.answer}, as the survey confirms."
    turns = [
        ("user", f"{row.placeholder}\n{row.question}"), ("call", call), ("tool", found), ("assistant", row.answer),
    ]  # fmt: skip
    for edit in row.edits:
        turns = edit(turns)
    return turns


THOUGHTS = ("I look for a record of what the photograph shows.", "First I need to find where this was taken.",
            "The scene is not enough, so I search.", "A search should tell what this is.")  # fmt: skip


def spell(row: Row, role: str, value: str, close: str) -> str:
    """Return the text of a turn with thought and tags."""
    if role == "call":
        return f"<think>{THOUGHTS[row.number % 4]}</think>\n<tool_call>\n{value}\n</tool_call>"
    if role == "assistant":
        return f"<think>Sheet {row.number * 17} settles it.</think>\n<{close}>{value}</{close}>"
    return f"<tool_response>\n{value}\n</tool_response>" if role == "tool" else value


def write_opensearch(path: Path, rows: Sequence[Row]) -> None:
    roles = {"user": "human", "call": "gpt", "tool": "observation", "assistant": "gpt"}
    write_json(path, [{
        "conversations": [{"from": roles[role], "value": spell(row, role, value, "response")}
                          for role, value in talk(row)],
        "images": [f"images/{row.name}"], "system": "You answer questions about pictures with tools.", "tools": TOOLS,
    } for row in rows])  # fmt: skip


def write_vsearcher(path: Path, rows: Sequence[Row]) -> None:
    roles = {"user": "user", "call": "assistant", "tool": "user", "assistant": "assistant"}
    system = {"role": "system", "content": f"You may call tools.\n<tools>\n{TOOLS}\n</tools>"}
    write_json(path, [{
        "messages": [system, *({"role": roles[role], "content": spell(row, role, value, "answer")}
                               for role, value in talk(row))],
        "images": [link(row)],
    } for row in rows])  # fmt: skip


def write_sharegpt(path: Path, rows: Sequence[Row]) -> None:
    roles = {"user": "human", "call": "function_call", "tool": "observation", "assistant": "gpt"}
    write_json(path, [{
        "conversations": [{"from": roles[role], "value": value} for role, value in talk(row)],
        "images": [f"images/{row.name}"], "system": "Use the tools, then give the answer alone.", "tools": TOOLS,
    } for row in rows])  # fmt: skip


LAYOUTS = {layout.name: layout for layout in (
    Layout("livevqa", "benchmark.json", write_livevqa, mark_livevqa, "files"),
    Layout("fvqa-json", "fvqa_train.json", write_fvqa_json, mark_fvqa, "files"),
    Layout("fvqa-pq", "fvqa_train.pq", write_fvqa_pq, mark_fvqa, "bytes"),
    Layout("infoseek", "infoseek_train.jsonl", write_infoseek, mark_infoseek, "files"),
    Layout("webqa", "WebQA_train_val.json", write_webqa, mark_webqa, "files"),
    Layout("mm-searchexam", "mmsearchexam.jsonl", write_exam, mark_place, "files"),
    Layout("verl", "train.parquet", write_verl, mark_verl, "bytes"),
    Layout("opensearch-vl-sft", "wiki_en.json", write_opensearch, mark_place, "talk"),
    Layout("vsearcher-sft", "trajectory.json", write_vsearcher, mark_place, "talk"),
    Layout("llamafactory", "sharegpt.json", write_sharegpt, mark_place, "talk"),
)}  # fmt: skip
