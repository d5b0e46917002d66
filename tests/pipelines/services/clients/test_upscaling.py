from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pipelines.agent.pictures import enlarge_picture
from pipelines.errors import ConfigError
from pipelines.pictures import open_pixels
from pipelines.services.clients.upscaling import TILE, Edsr
from tests.pipelines.agent.signs import draw_scene, encode_scene
from tests.pipelines.services.clients.frozen_graphs import write_graph


@pytest.fixture
def load(tmp_path):
    def load_graph(graph, name="EDSR_x2.pb"):
        path = tmp_path / name
        path.write_bytes(graph)
        return Edsr(path)

    return load_graph


def paint(height, width):
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("scale", [2, 3, 4])
@pytest.mark.parametrize("turned", [True, False])
def test_a_frozen_graph_enlarges_by_its_own_factor(load, scale, turned):
    network, pixels = load(write_graph(scale, turned=turned)), paint(20, 30)
    assert network.scale == scale
    np.testing.assert_array_equal(network.enlarge(pixels), pixels.repeat(scale, 0).repeat(scale, 1))


def test_threads_share_a_network_and_tiles_leave_no_seam(load):
    network, pictures = load(write_graph(2)), [paint(TILE * 2 + step, TILE + 1) for step in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for pixels, made in zip(pictures, pool.map(network.enlarge, pictures), strict=True):
            np.testing.assert_array_equal(made, pixels.repeat(2, 0).repeat(2, 1))


def test_a_picture_file_is_enlarged_as_it_is_shown(load):
    data = encode_scene(draw_scene(1, (40, 30)), "png")
    made = open_pixels(enlarge_picture(data, load(write_graph(4))))
    np.testing.assert_array_equal(np.asarray(made)[::4, ::4], np.asarray(open_pixels(data)))


def test_identity_follows_the_weights(load):
    identities = {load(write_graph(scale), f"{scale}.pb").identity for scale in (2, 3)}
    assert len(identities) == 2
    assert load(write_graph(2), "copy.pb").identity in identities


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (b"", "0 bytes"),
        (b"<html>404</html>", "not a frozen TensorFlow graph"),
        (write_graph(2)[:300], "not a frozen TensorFlow graph"),
        (write_graph(1), "a factor of"),
        (write_graph(5), "a factor of"),
        (write_graph(2, colours=1), "3 colours"),
    ],
)
def test_what_is_no_such_network_is_refused_when_it_is_named(load, graph, message):
    with pytest.raises(ConfigError, match=message):
        load(graph)


def test_a_missing_file_is_refused_with_the_setting_that_names_it(tmp_path):
    with pytest.raises(ConfigError, match=r"tools\.edsr"):
        Edsr(tmp_path / "EDSR_x4.pb")
