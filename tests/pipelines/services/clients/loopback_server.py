"""What the tests' stand-in services have in common: a server on a loopback port that is there for a block."""

import sys
import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer


class LoopbackServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Say nothing of a client that hung up; it may."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def run_server(handler):
    """Run a server until the block ends, on a port of its own."""
    with LoopbackServer(("127.0.0.1", 0), handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield httpd
        finally:
            httpd.shutdown()
            thread.join()
