"""SFT releases in the layout of SenseNova-MARS's manifests.

The system publishes manifests for RL alone, and trains its cold start with LLaMA-Factory (4.1), for which there is an
exporter of its own. Here trajectories stand in the same layout as its RL rows, so that one reader takes both: a
manifest with root, annotation and length, and JSON lines with pictures as files. Beside them a line has the whole
conversation, the question, where it comes from, and the tools.
"""

import json
from functools import partial
from pathlib import Path

from pipelines.errors import ConfigError
from pipelines.release.exporters.base import Exporter, ExportOptions, Row, SplitFiles, Written, open_lines
from pipelines.release.exporters.conversations import Conversation, read_in_dialect
from pipelines.release.exporters.rl import check_mars, name_stratum, write_manifests
from pipelines.release.exporters.rules import LoadedMarsTrajectory
from pipelines.release.rows import DATA_SOURCE, show_pictures


def write_mars_sft(release: Path, folder: Path, options: ExportOptions) -> Written:
    """Write an SFT release as trajectories under a manifest; see :class:`Exporter`."""
    name = options.name
    if "train" in name or "test" in name:
        raise ConfigError(f"export: the name {name!r} holds train or test, which its file names use for the split")
    rows, longest, files = 0, 0, SplitFiles(folder, ".jsonl", open_lines, 1)
    with files:
        for conversation in read_in_dialect(release, options.dialect):
            rows += 1
            longest = max(longest, conversation.row.tokens)
            stratum = name_stratum(conversation.split, conversation.pictures[:1])
            files.write(stratum, _make_row(conversation, folder))
    # A manifest that is trained on must name a reward, which no cold start asks for.
    write_manifests(folder, name, files.rows, ["llm_score", "format_score"])
    notes = (
        "LLaMA-Factory, with which the paper's cold start is trained, reads the export llamafactory",
        f"the longest conversation has {longest:,} tokens as the release counts them",
    )
    return Written(rows, files.total, notes)


def _make_row(conversation: Conversation, folder: Path) -> Row:
    row = conversation.row
    messages = [{"role": "system", "content": conversation.system}] if conversation.system else []
    for exchange in conversation.exchanges:
        shown = show_pictures(len(exchange.shown.pictures), exchange.shown.text)
        messages += [{"role": "user", "content": shown}, {"role": "assistant", "content": exchange.said.text}]
    accepted = dict.fromkeys((row.answer, *row.answer_aliases))
    return {
        "index": row.id,
        "question": row.question,
        "messages": messages,
        "images": [picture.save(folder) for picture in conversation.pictures],
        "reward_model": {"style": "rule", "ground_truth": row.answer, "candidate_answers": list(accepted)},
        "source": f"{DATA_SOURCE}:{row.question_id}",
        "tools": json.loads(conversation.tools),
        "synth": conversation.describe(),
    }


MARS_EXPORTERS = (Exporter("mars-sft", "sft", write_mars_sft, partial(check_mars, row=LoadedMarsTrajectory)),)
