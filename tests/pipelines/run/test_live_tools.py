import pytest

from pipelines.config.settings import LiveConfig
from pipelines.errors import ConfigError
from pipelines.pictures import PictureStore
from pipelines.run.assembly import make_image_search, make_reader, make_text_search
from pipelines.services.clients.pages import DirectReader, JinaReader
from pipelines.services.clients.search import LiveSearch

LENS = {"images": "serpapi", "urls": {"pictures": "https://pictures.example.org/images"}}


@pytest.mark.parametrize("search", ["serper", "serpapi"])
def test_the_text_search_is_the_one_that_is_named(search):
    config = LiveConfig(search=search, urls={"search": "https://s.example.org/x"}, key_envs={"search": "KEY"})
    made = make_text_search(config)
    assert isinstance(made, LiveSearch)
    assert (made.protocol, made.url, made.key_env) == (search, "https://s.example.org/x", "KEY")


def test_the_reader_is_the_one_that_is_named():
    pytest.importorskip("trafilatura")
    assert isinstance(make_reader(LiveConfig(), "ada@example.org"), DirectReader)
    assert isinstance(make_reader(LiveConfig(reader="jina"), ""), JinaReader)


def test_no_configuration_opens_the_way_to_private_addresses():
    pytest.importorskip("trafilatura")
    plain = DirectReader()
    assert make_reader(LiveConfig(urls={"reader": "http://127.0.0.1:1/"}), "").guard == plain.guard
    assert not {"guard", "allow", "lookup", "private"} & set(LiveConfig.model_fields)


def test_the_image_search_is_the_one_that_is_named(tmp_path):
    store = PictureStore(tmp_path)
    assert make_image_search(LiveConfig(), store).protocol == "google-vision"
    assert make_image_search(LiveConfig(**LENS), store).protocol == "serpapi"


def test_serpapi_needs_a_place_where_pictures_are_published(tmp_path):
    with pytest.raises(ConfigError, match=r"urls\.pictures"):
        make_image_search(LiveConfig(images="serpapi"), PictureStore(tmp_path))
