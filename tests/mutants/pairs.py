"""Small sets of minimal pairs that a wrong check does not tell apart: the planted defects, and questions at a limit.

A set is judged anew under each mutant. Clean and defective twins are the same each time; only the checks differ.
"""

from tests.mutants.corpora import Corpora, Judge
from tests.mutants.doors import list_stage_sets
from tests.mutants.limits import list_limit_sets
from tests.mutants.picturing import list_picture_sets
from tests.mutants.planted import list_scene_sets, list_text_sets
from tests.mutants.read_back import list_reading_sets
from tests.mutants.trajectories import list_trajectory_sets


def make_sets(corpora: Corpora) -> dict[str, Judge]:
    """Return every set of pairs by name; making a set's twins is put off until it is first judged."""
    return {
        **list_text_sets(),
        **list_picture_sets(),
        **list_scene_sets(corpora),
        **list_limit_sets(corpora),
        **list_stage_sets(corpora),
        **list_reading_sets(corpora),
        **list_trajectory_sets(corpora),
    }
