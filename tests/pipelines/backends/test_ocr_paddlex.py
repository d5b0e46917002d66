import asyncio
import json

import pytest

from pipelines.errors import ConfigError, RateLimited, RecordFailed, Unavailable
from pipelines.services.clients.ocr import PaddleX
from tests.pipelines.backends.paddlex_server import Fault, run_layout
from tests.pipelines.backends.signs import draw_sign

SIGN = draw_sign()


@pytest.fixture
def layout():
    with run_layout() as server:
        yield server


def read(server, seconds=30.0, data=SIGN):
    return asyncio.run(PaddleX(server.url, seconds).read_text(data))


def reply(pruned):
    return json.dumps({"result": {"layoutParsingResults": [{"prunedResult": pruned}]}}).encode()


def test_blocks_keep_their_labels_and_order(layout):
    (block,) = read(layout)
    assert (block.text, block.label, block.confidence) == ("Kelmor Bridge", "paragraph_title", 1.0)


def test_a_line_that_stands_in_no_block_is_read_too(layout):
    layout.stray = "Mind the step"
    assert [(block.text, block.label) for block in read(layout)] == [
        ("Kelmor Bridge", "paragraph_title"),
        ("Mind the step", "text"),
    ]


def test_the_request_asks_for_boxes_in_the_pixels_that_were_sent(layout):
    read(layout)
    (request,) = layout.requests
    assert request.pop("file")
    assert request == {
        "fileType": 1, "useDocOrientationClassify": False, "useDocUnwarping": False, "visualize": False,
    }  # fmt: skip
    assert layout.paths == ["/layout-parsing"]


def test_the_address_may_name_the_path_and_is_the_identity_without_a_revision(layout):
    for url in (layout.url, f"{layout.url}/", f"{layout.url}/layout-parsing"):
        assert PaddleX(url).identity == f"paddlex@1:{layout.url}"
    assert PaddleX(layout.url, revision="v3").identity == "paddlex@1:v3"


@pytest.mark.parametrize("url", ["", "ftp://host", "host:80", "http://", "http://[::1", "http://host:0"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match=r"ocr\.url"):
        PaddleX(url)


@pytest.mark.parametrize("url", ["http://me:secret@host", "http://host?key=secret", "http://host#secret"])
def test_an_address_with_credentials_is_refused_and_not_shown(url):
    with pytest.raises(ConfigError, match="the address alone") as caught:
        PaddleX(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_asks_to_slow_down_says_how_long(layout, status):
    layout.fault = Fault(status, headers={"Retry-After": "7"})
    with pytest.raises(RateLimited) as caught:
        read(layout)
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_picture_fails_its_record(layout, status):
    layout.fault = Fault(status, b'{"errorCode": 422, "errorMsg": "bad file"}')
    with pytest.raises(RecordFailed, match=r"ocr-refused.*bad file"):
        read(layout)


def test_a_picture_that_breaks_a_healthy_service_fails_its_record(layout):
    layout.fault = Fault(500)
    with pytest.raises(RecordFailed, match=r"ocr-failed.*Internal server error"):
        read(layout)
    assert layout.paths == ["/layout-parsing", "/health"]


def test_a_service_that_breaks_and_is_not_healthy_is_away(layout):
    layout.fault, layout.healthy = Fault(500), False
    with pytest.raises(Unavailable, match="HTTP 500 to /health"):
        read(layout)


def test_a_picture_that_takes_too_long_fails_its_record(layout):
    layout.fault = Fault(200, silence=1.0)
    with pytest.raises(RecordFailed, match="ocr-timeout"):
        read(layout, seconds=0.2)


def test_a_reply_that_breaks_off_is_never_half_read(layout):
    layout.fault = Fault(200, reply({"parsing_res_list": []}), cut=10)
    with pytest.raises(RecordFailed, match="no whole reply"):
        read(layout)


def test_a_service_where_nobody_listens_is_away():
    with run_layout() as server:
        gone = server.url
    with pytest.raises(Unavailable, match="no answer to /health"):
        asyncio.run(PaddleX(gone, 5.0).read_text(SIGN))


@pytest.mark.parametrize("status", [301, 401, 404])
def test_an_address_of_something_else_is_refused(layout, status):
    layout.fault = Fault(status, b"<html>not here</html>")
    with pytest.raises(ConfigError, match=f"HTTP {status}"):
        read(layout)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>", b"[]", b"{}", b'{"result": {"layoutParsingResults": []}}',
        b'{"result": {"layoutParsingResults": [{"prunedResult": null}]}}', reply({}), reply({"parsing_res_list": None}),
    ],
)  # fmt: skip
def test_a_reply_of_another_form_is_refused_and_reads_as_nothing_never(layout, body):
    layout.fault = Fault(200, body)
    with pytest.raises(ConfigError, match=r"ocr\.url"):
        read(layout)


@pytest.mark.parametrize(
    "pruned",
    [
        {"parsing_res_list": [{}]},
        {"parsing_res_list": [1]},
        {"parsing_res_list": [{"block_label": "text", "block_content": "a", "block_bbox": [1, 2, 3]}]},
        {"parsing_res_list": [{"block_label": "text", "block_content": "a", "block_bbox": ["a", 2, 3, 4]}]},
        {"parsing_res_list": [], "overall_ocr_res": {"rec_texts": ["a"], "rec_boxes": [], "rec_scores": []}},
    ],
)
def test_a_block_of_another_form_fails_the_record(layout, pruned):
    layout.fault = Fault(200, reply(pruned))
    with pytest.raises(RecordFailed, match="another form"):
        read(layout)
