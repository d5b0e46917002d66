"""Files in the layouts that others publish, written from questions of our own: what readers and checks are tried on."""

import base64
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


def _turns(asked: Published, **names: str) -> list[dict]:
    role, content, user, bot, tool = (names.get(n, n) for n in ("role", "content", "user", "assistant", "tool"))
    call = '<think>I look.</think><tool_call>{"name": "image_search", "arguments": {}}</tool_call>'
    return [
        {role: user, content: f"<image>\nQuestion: {asked.question}"},
        {role: bot, content: call},
        {role: tool, content: f"<tool_response>A page about {asked.entity}: <image></tool_response>"},
        {role: bot, content: f"<think>So.</think><response>{asked.answer}</response>"},
    ]


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


def write_fvqa_facts(asked: Published) -> dict:
    """FVQA of 2017."""
    return {"question": asked.question, "answer": asked.answer, "img_file": f"{asked.id}.png", "fact": ["e1"],
            "kb_source": "conceptnet", "ans_source": "KnowledgeBase"}  # fmt: skip


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


def write_simplevqa(asked: Published) -> dict:
    """SimpleVQA's lines, with the picture in base64."""
    return {"data_id": asked.id, "image": base64.b64encode(asked.picture).decode(), "language": "EN",
            "question": asked.question, "answer": asked.answer, "atomic_question": "What is it?",
            "atomic_fact": asked.entity, "original_category": "art"}  # fmt: skip


def write_exam(asked: Published) -> dict:
    """MM-SearchExam, with the address of the picture."""
    address = f"https://raw.example/store/main/{asked.id}.png"
    return {"question": asked.question, "image_path": address, "answer": asked.answer}


def write_mmsearch(asked: Published) -> dict:
    """MMSearch end2end."""
    return {
        "sample_id": asked.id, "query": asked.question, "query_image": _bytes(asked), "image_search_result": None,
        "area": "knowledge", "subfield": "arts", "timestamp": "2024", "gt_requery": "r", "gt_answer": asked.answer,
        "alternative_gt_answers": [asked.alias],
    }  # fmt: skip


def write_browsecomp(asked: Published) -> dict:
    """BrowseComp-VL."""
    return {"question": asked.question, "image_path": f"image/level1/{asked.id}.png",
            "answers": [asked.answer, asked.alias], "domain": "arts"}  # fmt: skip


def write_vdr(asked: Published) -> dict:
    """Vision-DeepResearch's pack."""
    packed = [{"filename": "1.png", "data": base64.b64encode(asked.picture).decode()}]
    return {"id": f"vdr_arts_{asked.id}", "question": asked.question, "answer": asked.answer,
            "image_packed": json.dumps(packed)}  # fmt: skip


def write_opensearch(asked: Published) -> dict:
    """OpenSearch-VL's conversations for SFT."""
    turns = _turns(asked, role="from", content="value", user="human", assistant="gpt", tool="observation")
    return {"conversations": turns, "images": [f"{asked.id}.png", "found.png"], "system": "s", "tools": "[]"}


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


def write_sharegpt(asked: Published) -> dict:
    """LLaMA-Factory's conversation without tools."""
    turns = [{"from": "human", "value": f"<image>{asked.question}"}, {"from": "gpt", "value": asked.answer}]
    return {"conversations": turns, "images": [f"{asked.id}.png"]}


def write_messages(asked: Published) -> dict:
    """OpenAI's messages with typed content and the picture in its address."""
    address = f"data:image/png;base64,{base64.b64encode(asked.picture).decode()}"
    shown = [{"type": "text", "text": asked.question}, {"type": "image_url", "image_url": {"url": address}}]
    said = [{"type": "text", "text": asked.answer}]
    return {"messages": [{"role": "user", "content": shown}, {"role": "assistant", "content": said}]}


def write_alpaca(asked: Published) -> dict:
    """LLaMA-Factory's instructions."""
    return {"instruction": f"<image>{asked.question}", "input": "", "output": asked.answer,
            "images": [f"{asked.id}.png"]}  # fmt: skip


def write_verl(asked: Published) -> dict:
    """verl's rows for RL."""
    return {
        "data_source": "ours", "prompt": [{"role": "user", "content": f"<image>Use tools.\n{asked.question}"}],
        "images": [_bytes(asked)], "ability": "vqa", "reward_model": {"style": "rule", "ground_truth": asked.answer},
        "extra_info": {"index": asked.id, "split": "test", "question": asked.question, "answer": asked.answer},
    }  # fmt: skip


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


def write_spread(path: Path, rows: Sequence[dict]) -> None:
    """Write objects over several lines each, in a file that is named as if it had lines."""
    path.write_text("\n".join(json.dumps(row, indent=2) for row in rows))


WRITERS: dict[str, tuple[str, str, Callable, Callable]] = {
    "fvqa": ("fvqa", "mini_data.pq", write_fvqa, write_parquet),
    "fvqa of MARS": ("fvqa", "fvqa_test.jsonl", write_mars, write_lines),
    "fvqa-facts": ("fvqa-facts", "all_qs_dict_release.json", write_fvqa_facts, write_keyed),
    "livevqa": ("livevqa", "benchmark.json", write_livevqa, write_document),
    "infoseek": ("infoseek", "infoseek_val.jsonl", write_infoseek, write_lines),
    "webqa": ("webqa", "WebQA_train_val.json", write_webqa, write_keyed),
    "simplevqa": ("simplevqa", "simplevqa.json", write_simplevqa, write_lines),
    "mm-searchexam": ("mm-searchexam", "mmsearchexam.jsonl", write_exam, write_lines),
    "mmsearch": ("mmsearch", "end2end.parquet", write_mmsearch, write_parquet),
    "browsecomp-vl": ("browsecomp-vl", "bc_vl_level1.jsonl", write_browsecomp, write_spread),
    "vdr": ("vdr", "testmini500_v1.bin", write_vdr, write_parquet),
    "opensearch-vl": ("opensearch-vl", "wiki_en.json", write_opensearch, write_document),
    "vsearcher": ("vsearcher", "trajectory.jsonl", write_vsearcher, write_lines),
    "sharegpt": ("sharegpt", "sft.json", write_sharegpt, write_document),
    "messages": ("messages", "chat.jsonl", write_messages, write_lines),
    "alpaca": ("alpaca", "alpaca.json", write_alpaca, write_document),
    "verl": ("verl", "test.parquet", write_verl, write_parquet),
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
