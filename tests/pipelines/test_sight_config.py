import pytest

from pipelines.config.loading import make_config, read_recipe
from pipelines.errors import ConfigError


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        (("corpus.dump=x.xml", 'groundings.ocr=["layer"]'), "generated worlds alone"),
        (("corpus.dump=x.xml", "tools.layout=layer"), "generated worlds alone"),
        (("groundings.ranker=clip",), "encoder.pretrained is empty"),
        (("image_search.method=clip",), "encoder.pretrained is empty"),
        (("commons.fetch=true",), "commons.contact is empty"),
        (("commons.search=true", "commons.contact=a@b.example"), "commons.search needs"),
        (("commons.width=1000",), "commons.width"),
        (("enhancements.strengths=[0.0]",), "enhancements.strengths"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_what_to_say(settings, word):
    with pytest.raises(ConfigError, match=word):
        make_config(read_recipe("demo"), settings)


def test_a_dump_is_read_by_a_real_engine_unless_another_is_named():
    assert make_config(read_recipe("demo"), ["corpus.dump=x.xml"]).groundings.ocr == ("rapidocr",)
    assert make_config(read_recipe("demo")).groundings.ocr == ("layer",)
