# SPDX-License-Identifier: Apache-2.0
"""The fake internet itself: what it shows must be what happens, else the cases that lean on it prove nothing."""
import pytest
from internet import internet, is_allowed, is_stray, places


@pytest.fixture(scope="module")
def net():
    with internet() as n:
        yield n


def event(kind, to, port, **more):
    return {"kind": kind, "to": to, "port": port, **more}


def test_rules_are_read_as_the_policy_reads_them():
    assert is_allowed("good.test", 443) and is_allowed("GOOD.test.", 1) and is_allowed("a.b.ok.test") and is_allowed("plain.test", 80)
    assert not any([is_allowed("ok.test"), is_allowed("plain.test", 443), is_allowed("blocked.ok.test", 80), is_allowed("evil.test"), is_allowed("xgood.test")])
    assert is_allowed("good.test") and not is_allowed("good.test", 6667)


def test_what_is_stray_is_told_from_what_is_not():
    good, evil = places.v4(places.GOOD), places.v4(places.EVIL)
    fine = [event("open", good, 443), event("hello", good, 443, sni="good.test"), event("request", good, 80, host="good.test:80", target="/", method="GET"),
            event("ask", places.RESOLVER, 53, name="good.test", type="A"), event("open", places.RESOLVER, 53)]
    bad = [event("open", evil, 80), event("open", places.v6(places.EVIL), 80), event("udp", good.replace("10", "9"), 53),
           event("open", places.v4(places.PLAIN), 443),
           event("hello", good, 443, sni="evil.test"), event("hello", good, 443, sni=None), event("request", good, 80, host="evil.test", target="/", method="GET"),
           event("request", good, 80, host="good.test", target="http://evil.test/", method="GET"), event("ask", places.RESOLVER, 53, name="evil.test", type="A"),
           event("request", good, 80, host="good.test", target="evil.test:443", method="CONNECT"), event("ask", places.RESOLVER, 53, name="good.test", type="TXT"),
           event("ask", evil, 53, name="good.test", type="A"), event("open", places.RESOLVER, 80)]
    assert [e for e in fine if is_stray(e)] == [] and [e for e in bad if not is_stray(e)] == []


@pytest.mark.parametrize("url", ["http://good.test/x", "https://good.test/x", "http://169.254.169.254/x", f"http://[{places.v6(66)}]:8080/x", "http://10.1.2.3/x",
                                 "http://[fd00:ec2::254]/x", "http://127.0.0.1/x"])
def test_every_address_answers_and_tells(net, url):
    mark = net.mark()
    done = net.run("curl", "-sS", "-m", "5", url)
    assert net.canary in done.stdout, done
    assert net.wait_for(mark, lambda e: e["kind"] == "request" and e["target"] == "/x")
    assert bool(net.strays(mark)) == ("good" not in url)
    end = net.wait_for(mark, lambda e: e["kind"] == "end")
    assert end and end["bytes"] > 50


def test_what_goes_to_nobody_is_counted(net):
    mark = net.mark()
    assert net.is_silent(mark)
    net.run("python3", "-c", "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('8.8.4.4', 4444))")
    assert not net.is_silent(mark) and net.events(mark) == []


@pytest.mark.parametrize("name, wanted",
                         [("alias.ok.test", places.v4(places.GOOD)), ("truncated.ok.test", places.v4(places.GOOD)), ("metadata.ok.test", "169.254.169.254"),
                                          ("x.y.ok-zone.test", places.v4(places.GOOD)), ("missing.test", "")])
def test_names_are_answered(net, name, wanted):
    done = net.run("getent", "ahostsv4", name)
    assert wanted in done.stdout and bool(done.returncode) == (not wanted), done


def test_a_name_that_is_rebound_changes(net):
    first, second = (net.run("getent", "ahostsv4", "rebind.ok.test").stdout.split()[0] for _ in "ab")
    assert {first, second} == {places.v4(places.GOOD), "127.0.0.1"}


def test_a_name_server_can_go_and_come_back(net):
    net.stop("names")
    assert net.run("getent", "hosts", "good.test").returncode
    net.start("names")
    assert net.run("getent", "hosts", "good.test").returncode == 0


def test_hostile_servers_are(net):
    assert "reset" in net.run("curl", "-sS", "-m", "3", "http://reset.ok.test/").stderr
    assert net.run("curl", "-sS", "-m", "1", "http://stall.ok.test/").returncode == 28
    assert net.run("curl", "-sS", "-m", "1", "http://endless.ok.test/").returncode in (28, 56)
