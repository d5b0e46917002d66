import pytest

from tests.pipelines.release.builders import make_context, make_material


@pytest.fixture
def material(tmp_path):
    return make_material(tmp_path)


@pytest.fixture
def context():
    return make_context()
