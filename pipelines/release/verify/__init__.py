"""Verifying a release: every row's answer is derived again from the corpus and the proof alone, with no model.

A release is checked in three ways: its files against the manifest, each row against its proof and the corpus, and the
rows against each other. The later checks do not trust the manifest, so a release that was changed and resealed fails.

Each row is made again from its proof row by the functions that publishing uses, and every column is compared. A
transcript is checked by the rules it was accepted by: form, tools, question, answer and where the answer was seen. Its
length, and the pages that a search by picture finds, cannot be checked.
"""

from pipelines.release.verify.claims import describe_claim, describe_origin
from pipelines.release.verify.pictures import find_picture_problems
from pipelines.release.verify.questions import find_question_problems
from pipelines.release.verify.reading import read_anew
from pipelines.release.verify.release import verify_release
from pipelines.release.verify.reports import Problem, VerifyReport, describe_rows
from pipelines.release.verify.rows import find_row_problems
from pipelines.release.verify.transcripts import find_transcript_problems

__all__ = [
    "Problem",
    "VerifyReport",
    "describe_claim",
    "describe_origin",
    "describe_rows",
    "find_picture_problems",
    "find_question_problems",
    "find_row_problems",
    "find_transcript_problems",
    "read_anew",
    "verify_release",
]
