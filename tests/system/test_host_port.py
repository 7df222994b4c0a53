# SPDX-License-Identifier: Apache-2.0
"""Ports of the host's loopback under names of the zone host.pale, the zone's own name among them."""
import http.server
import threading

import pytest


@pytest.fixture
def servers():
    """Two servers of the host, each with its own word."""
    made = []
    for word in (b"one", b"two"):
        class Handler(http.server.BaseHTTPRequestHandler):
            said = word

            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(self.said)))
                self.end_headers()
                self.wfile.write(self.said)

            def log_message(self, *_):
                pass
        s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=s.serve_forever, daemon=True).start()
        made.append(s)
    yield [s.server_address[1] for s in made]
    for s in made:
        s.shutdown()
        s.server_close()


FETCH = "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())"


def fetch(pale, box, url):
    return pale.exec(box, "python3", "-c", FETCH, url)


@pytest.mark.parametrize("mode", ["filtered", "open"])
def test_the_zone_itself_is_a_name(pale, servers, mode):
    one, two = servers
    (pale.home / "p.yaml").write_text(f"network: {{mode: {mode}, egress: [{{host_port: {one}}}]}}\n")
    assert pale.ok("policy", "ask", "p.yaml", "reach", f"host.pale:{one}").text.startswith("yes")
    pale.ok("create", "b", "--policy", "p.yaml")
    for name in ("host.pale", "HOST.pale", "host.pale."):
        assert fetch(pale, "b", f"http://{name}:{one}/").text == "one\n"
    for name, port in (("host.pale", two), ("db.host.pale", one), ("localhost", one), ("xhost.pale", one)):
        assert fetch(pale, "b", f"http://{name}:{port}/").code != 0, name


def test_names_lead_to_their_own_ports(pale, servers):
    one, two = servers
    pale.ok("create", "a", "--allow", f"host.pale:{one}", "--allow", f"db.host.pale:{two}")
    pale.ok("create", "b", "--allow", f"host.pale:{two}")
    assert fetch(pale, "a", f"http://host.pale:{one}/").text == "one\n"
    assert fetch(pale, "a", f"http://db.host.pale:{two}/").text == "two\n"
    assert fetch(pale, "b", f"http://host.pale:{two}/").text == "two\n"
    for box, url in (("a", f"http://host.pale:{two}/"), ("a", f"http://db.host.pale:{one}/"), ("b", f"http://host.pale:{one}/")):
        assert fetch(pale, box, url).code != 0
