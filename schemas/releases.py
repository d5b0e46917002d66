"""Releases: which question goes into which published dataset and split."""

from typing import Literal

from schemas.base import Record

Dataset = Literal["sft", "rl", "bridgevqa"]


class ReleaseEntry(Record):
    """One row of one released dataset. ``parent_id`` is the question."""

    dataset: Dataset
    split: str
    trajectory_id: str
    """The trajectory of an SFT row; empty in the other datasets."""
