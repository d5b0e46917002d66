"""Turns at services that the processes of a run share, when the store cannot be written."""

from concurrent.futures import Future

from pipelines.errors import Unavailable
from pipelines.services.clients.turns import Turns


class FullLedger:
    """Writes no pause, and ends claims."""

    def __init__(self):
        self.released = []

    def put_off(self, run, service, pause, hold):
        raise Unavailable("the disk is full")

    def release(self, keys):
        self.released += keys


class Writer:
    """Does at once what it is given, and keeps the error of it in the future."""

    def __init__(self):
        self.ledger = FullLedger()

    def submit(self, call):
        future = Future()
        try:
            future.set_result(call())
        except Unavailable as error:
            future.set_exception(error)
        return future


def test_a_place_is_left_though_its_pause_cannot_be_written_and_the_log_says_so(caplog):
    writer = Writer()
    Turns("run", writer).leave("commons", "run commons 0", 1.0)
    assert writer.ledger.released == ["run commons 0"]
    assert "the disk is full" in caplog.text
