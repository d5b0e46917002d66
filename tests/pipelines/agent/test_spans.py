import pytest

from pipelines.agent.observations import find_name


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("by ANA  KOVAČ.", "Ana Kovač", "ANA  KOVAČ"),
        ("it happened during summer", "Ur", None),
        ("1,205 people", "205", None),
        ("5.2 m", "5", None),
        ("in 1931.", "1931", "1931"),
        ("Marlow (town) lies", "Marlow (town)", "Marlow (town)"),
        ("anything", " ", None),
    ],
)
def test_names_are_found_whole_or_not_at_all(text, name, found):
    span = find_name(text, name)
    assert (None if span is None else text[slice(*span)]) == found
