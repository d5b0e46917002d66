"""Files in the layouts that others publish, written from questions of our own: what readers and checks are tried on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True)
class Published:
    """A question as a benchmark or a training set has it."""

    id: str
    question: str
    answer: str
    alias: str
    entity: str
    picture: bytes


def _bytes(asked: Published) -> dict:
    return {"bytes": asked.picture, "path": None}


def write_fvqa(asked: Published) -> dict:
    """MMSearch-R1's Parquet."""
    aliases = json.dumps([asked.alias])
    return {
        "data_id": asked.id, "prompt": [{"role": "user", "content": asked.question}], "images": [_bytes(asked)],
        "reward_model": {"style": "rule", "ground_truth": asked.answer, "candidate_answers": aliases},
        "data_source": "mmsearch_r1/fvqa_test", "image_urls": None, "category": "search_required",
    }  # fmt: skip


def write_mars(asked: Published) -> dict:
    """SenseNova-MARS's lines of FVQA."""
    return {
        "prompt": [{"role": "user", "content": asked.question}], "images": [f"pictures/{asked.id}.png"],
        "reward_model": {"ground_truth": asked.answer, "candidate_answers": [asked.alias]}, "index": asked.id,
        "image_search_title_list": ["a"], "image_search_thumbnail_list": ["b.png"],
    }  # fmt: skip


def write_livevqa(asked: Published) -> dict:
    """LiveVQA's benchmark of two levels; the second asks nothing here."""
    level = {"question": asked.question, "question_type": "person", "options": ["A. x", f"B. {asked.answer}"],
             "Ground_Truth": "B", "Ground_Truth_List": [asked.answer, asked.alias]}  # fmt: skip
    return {"id": asked.id, "img_path": f"{asked.id}.png", "level1_qa": level, "level2_qa": None, "source": "bbc"}


def write_infoseek(asked: Published) -> dict:
    """InfoSeek joined with its knowledge base."""
    return {"data_id": asked.id, "image_id": asked.id, "question": asked.question, "answer": [asked.answer],
            "answer_eval": [asked.answer, asked.alias], "data_split": "val", "entity_id": "Q1",
            "entity_text": asked.entity}  # fmt: skip


def write_webqa(asked: Published) -> dict:
    """WebQA: the answer is a sentence in quotes."""
    fact = {"image_id": int(asked.id), "title": asked.entity, "caption": "c"}
    return {"Q": f'"{asked.question}"', "A": [f'"{asked.answer}"'], "Guid": asked.id, "split": "val",
            "Qcate": "Others", "img_posFacts": [fact], "txt_posFacts": []}  # fmt: skip


def write_vsearcher(asked: Published) -> dict:
    """VSearcher's raw trajectory."""
    address = f"https://raw.example/{asked.id}.png"
    shown = [{"type": "image_url", "image_url": {"url": address}}, {"type": "text", "text": asked.question}]
    messages = [
        {"role": "system", "content": "Tools: none."},
        {"role": "user", "content": shown},
        {"role": "assistant", "content": f"<think>It is known.</think><answer>{asked.answer}</answer>"},
    ]
    return {"question": asked.question, "image_url": address, "answer": asked.answer, "messages": messages,
            "prediction": asked.answer, "termination": "answer", "correct": True}  # fmt: skip


def write_columns(asked: Published) -> dict:
    """A table with usual names."""
    return {"id": asked.id, "question": asked.question, "answer": asked.answer, "answer_aliases": [asked.alias],
            "image": f"{asked.id}.png", "entity": asked.entity}  # fmt: skip


def write_lines(path: Path, rows: Sequence[dict]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_document(path: Path, rows: Sequence[dict]) -> None:
    """Write a list."""
    path.write_text(json.dumps(list(rows)))


def write_keyed(path: Path, rows: Sequence[dict]) -> None:
    """Write an object of rows by id."""
    path.write_text(json.dumps({str(number): row for number, row in enumerate(rows)}, indent=1))


def write_parquet(path: Path, rows: Sequence[dict]) -> None:
    """Write Parquet, whatever the name ends in."""
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


WRITERS: dict[str, tuple[str, str, Callable, Callable]] = {
    "fvqa": ("fvqa", "mini_data.pq", write_fvqa, write_parquet),
    "fvqa of MARS": ("fvqa", "fvqa_test.jsonl", write_mars, write_lines),
    "livevqa": ("livevqa", "benchmark.json", write_livevqa, write_document),
    "infoseek": ("infoseek", "infoseek_val.jsonl", write_infoseek, write_lines),
    "webqa": ("webqa", "WebQA_train_val.json", write_webqa, write_keyed),
    "vsearcher": ("columns", "trajectory.jsonl", write_vsearcher, write_lines),
    "columns": ("columns", "table.jsonl", write_columns, write_lines),
}
"""By what it is: the layout, a file name that is usual for it, the writer of a row, and that of the file."""


def publish(folder: Path, kind: str, questions: Sequence[Published]) -> tuple[Path, Path]:
    """Write questions as a layout has them, with their pictures; return the file and the place of pictures."""
    _, name, make, write = WRITERS[kind]
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / name, [make(asked) for asked in questions])
    pictures = folder / "pictures"
    pictures.mkdir(exist_ok=True)
    for asked in questions:
        (pictures / f"{asked.id}.png").write_bytes(asked.picture)
    return folder / name, pictures
