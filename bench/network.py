# SPDX-License-Identifier: Apache-2.0
"""Measures of a box's way out: one stream beside a plain relay, slirp4netns and srt; how long the first byte takes; many connections; memory;
what a network adds to making a box; and a box that opens connections without end.

Everything happens in two network namespaces of our own, with public-looking addresses, and a cable between them: no packet leaves the machine.
The servers, the relay and the program that dials are farend.c and dialler.c."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager

from host import Failed, children, end, quantile, smaps_kib

NAMES = {"bench.example": "93.184.216.34", "many.example": "93.184.216.35", "other.example": "93.184.216.36"}
ADDRESS = NAMES["bench.example"]
PORTS = {"tls": 443, "http": 80, "greet": 25}
RELAYS = {"tls": 8443, "http": 8080, "greet": 8025}
FLOWS, RATE, HALF_OPEN = 10000, 2000, 100000
GATEWAY_SPARE_FDS = 2300  # pipes, lookups and the like: see stage_settle of src/gateway/main.c

# Two namespaces and a cable: whoever refuses to dial the host's own addresses (srt, and rightly) finds none there. A long run needs more ports
# than the usual 28,000, most of which would be waiting for stragglers.
SCRIPT = """set -e
echo 1024 65000 > /proc/sys/net/ipv4/ip_local_port_range; echo 1 > /proc/sys/net/ipv4/tcp_tw_reuse
mount --bind "$1" /etc/hosts
FAR='ip link set lo up; until ip link set far up 2>/dev/null; do sleep 0.02; done
for a in $1; do ip addr add $a/32 dev far; done; ip route add default dev far; exec setpriv --pdeathsig KILL "$2" serve'
unshare -n sh -c "$FAR" sh "$2" "$3" &
until [ "$(readlink /proc/$!/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
ip link set lo up
ip link add near type veth peer name far netns $!
ip addr add 203.0.113.2/32 dev near; ip link set near up; ip route add default dev near
wait"""


def row(values):
    return {"p50": round(quantile(values, 0.5), 1), "p99": round(quantile(values, 0.99), 1), "runs": len(values)}


@contextmanager
def world(who, stage, calm):
    """Namespaces with the servers in them; inside, who runs everything there. calm: before whatever else the machine does."""
    if subprocess.run(["unshare", "-n", "-m", "true"], capture_output=True, timeout=10, check=False).returncode:
        raise Failed("only root can make the network namespace that the servers are in")
    hosts = stage.folder / "hosts"
    hosts.write_text(pathlib.Path("/etc/hosts").read_text() + "".join(f"{a} {n}\n" for n, a in NAMES.items()))
    hosts.chmod(0o644)
    farend, before = str(stage.bin / "farend"), who.prefix
    first = ["chrt", "-r", "1"] if calm else []
    server = subprocess.Popen([*first, "unshare", "-n", "-m", "--propagation", "private", "sh", "-c", SCRIPT, "sh", str(hosts), " ".join(NAMES.values()), farend])
    started = [server]
    try:
        for _ in range(100):
            if all(os.readlink(f"/proc/{server.pid}/ns/{n}") != os.readlink(f"/proc/self/ns/{n}") for n in ("net", "mnt")):
                break
            time.sleep(0.05)
        else:
            raise Failed("the namespaces for the servers were not made")
        who.prefix = ["nsenter", "-t", str(server.pid), "-n", "-m", "--", *first, *before]
        started += [who.start(farend, "relay", RELAYS[kind], ADDRESS, PORTS[kind]) for kind in PORTS]
        for _ in range(100):
            time.sleep(0.05)
            if server.poll() is not None:
                raise Failed("the servers did not start")
            tried = subprocess.run([*who.prefix, str(stage.bin / "dialler"), "first", "tls", "127.0.0.1", str(RELAYS["tls"]), "bench.example", "1"],
                                   capture_output=True, timeout=20, check=False)
            if tried.returncode == 0:
                break
        yield
    finally:
        who.prefix = before
        end(*started)


class Boxed:
    """A box of pale with a network, or without one."""

    def __init__(self, who, stage, name, network=True):
        self.who, self.stage, self.name = who, stage, name
        self.policy = stage.folder / f"{name}.yaml"
        rules = "".join(f"    - {{domain: {n}}}\n    - {{domain: {n}, ports: [25]}}\n" for n in NAMES)
        self.policy.write_text(f"read: [{stage.bin}]\n" + (f"network:\n  mode: filtered\n  egress:\n{rules}" if network else ""))
        self.policy.chmod(0o644)

    def create(self, name=None):
        return [self.who.pale, "create", "-P", str(self.policy), name or self.name]

    def remove(self, name=None):
        return [self.who.pale, "rm", "-f", name or self.name]

    def __enter__(self):
        self.who.run(*self.create())
        return self

    def __exit__(self, *_):
        self.who.run(*self.remove(), check=False)

    def words(self, *words):
        return [self.who.pale, "exec", "-q", "-i", "-T", "5m", self.name, "--", self.stage.bin / "dialler", *words]

    def gateway(self):
        """The two processes of its gateway; the second serves."""
        keeper = json.loads(self.who.run(self.who.pale, "inspect", "--json", self.name))["keeper_pid"]
        first = next(p for p in children(keeper) if pathlib.Path(f"/proc/{p}/comm").read_text().strip() == "pale-gateway")
        return [first, *children(first)]

    def private_kib(self):
        return sum(smaps_kib(p, "Private_") for p in self.gateway())


class Slirp:
    """A namespace whose tap device slirp4netns serves, with the largest packets it can have."""

    def __init__(self, who, stage):
        self.who, self.dialler, self.path = who, stage.bin / "dialler", shutil.which("slirp4netns")

    def __enter__(self):
        if not self.path:
            raise Failed("slirp4netns is not installed; see bench/peers")
        self.inside = self.who.start("unshare", "-r", "-n", "sleep", "900")
        time.sleep(0.3)
        # `unshare` became `sleep`; what is before it is nsenter and setpriv, which became it too.
        self.slirp = self.who.start(self.path, "--configure", "--mtu=65520", self.inside.pid, "tap0", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            time.sleep(0.05)
            try:
                self.who.run(*self.words("first", "tls", ADDRESS, PORTS["tls"], "bench.example", 1), timeout=10)
                return self
            except Failed as problem:
                why = problem
        self.__exit__()
        raise Failed(f"slirp4netns does not come up: {why}")

    def __exit__(self, *_):
        end(self.slirp, self.inside)

    def words(self, *words):
        return ["nsenter", "-t", self.inside.pid, "-U", "-n", "--preserve-credentials", self.dialler, *words]


class SrtWay:
    """It has proxies for programs that ask them; the way from the box to those is socat's."""

    def __init__(self, who, stage, peers):
        self.dialler, self.peer = stage.bin / "dialler", next((p for p in peers if p.name == "srt"), None)
        self.settings = stage.folder / "srt-network.json"

    def __enter__(self):
        if not self.peer:
            raise Failed("srt is not installed or does not run; see bench/peers")
        self.settings.write_text(json.dumps({"network": {"allowedDomains": list(NAMES), "deniedDomains": []}, "filesystem": {
            "denyRead": [], "allowWrite": ["/tmp"], "denyWrite": []}}))
        self.settings.chmod(0o644)
        return self

    def __exit__(self, *_):
        pass

    def words(self, *words):
        return [self.peer.path, "-s", self.settings, self.dialler, *words]


def streams(who, stage, ways, args):
    """Microseconds of one stream by each way, in turns; of pale's to each of the others', as the median of the rounds."""
    rounds, size = max(5, args.rounds), (300 if args.runs <= 50 else 1000) * 1000 * 1000
    found, skipped = {}, {}
    for at in range(rounds):
        for op in ("get", "put"):
            for kind in PORTS:
                order = [n for n in ways if kind == "tls" or n in ("relay", "pale")]
                for name in order if at % 2 else reversed(order):
                    if name in skipped:
                        continue
                    try:
                        took = float(who.run(*ways[name](op, kind, size), timeout=120))
                        found.setdefault(f"{kind} {op}", {}).setdefault(name, []).append(took)
                    except Failed as problem:
                        if name == "pale":
                            raise
                        skipped[name] = str(problem)[-200:]
    table = {}
    for what, by in found.items():
        table[what] = {n: {"mb_s": round(size / quantile(v, 0.5)), "pale_takes": round(quantile([p / o for p, o in zip(by["pale"], v)], 0.5), 3)} for n, v in by.items()}
    return {"mb": size // 1000000, "rounds": rounds, "streams": table, "skipped": skipped}


def stream_ways(who, stage, peers, box, stack):
    dialler = stage.bin / "dialler"
    ways = {"direct": lambda op, kind, n: [dialler, op, kind, ADDRESS, PORTS[kind], "bench.example", n],
            "relay": lambda op, kind, n: [dialler, op, kind, "127.0.0.1", RELAYS[kind], "bench.example", n],
            "pale": lambda op, kind, n: box.words(op, kind, ADDRESS, PORTS[kind], "bench.example", n)}
    missing = {}
    for name, peer in (("slirp4netns", Slirp(who, stage)), ("srt", SrtWay(who, stage, peers))):
        try:
            there = stack.enter_context(peer)
            ways[name] = lambda op, kind, n, there=there: there.words(op, kind, ADDRESS, PORTS[kind], "bench.example", n)
        except Failed as problem:
            missing[name] = str(problem)[-200:]
    return ways, missing


def first_bytes(who, ways, kinds, args):
    """Dialling and the first byte back, directly, by the relay and out of a box."""
    found = {}
    for at in range(max(5, args.rounds)):
        order = [(k, n) for k in kinds for n in ("direct", "relay", "pale")]
        for kind, name in order if at % 2 else reversed(order):
            words = ways[name]("first", kind, 50)
            found.setdefault(kind, {}).setdefault(name, []).extend(float(x) for x in who.run(*words).split())
    table = {}
    for kind, by in found.items():
        table[kind] = {n: row(v) for n, v in by.items()}
        table[kind]["more_ms"] = round((table[kind]["pale"]["p50"] - table[kind]["direct"]["p50"]) / 1000, 3)
    return table


def held_flows():
    """How many at once this host lets one process have, each with two sockets; and what is in the way of more."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    fit = FLOWS if most == resource.RLIM_INFINITY else min(FLOWS, (most - GATEWAY_SPARE_FDS) // 2)
    return fit, None if fit == FLOWS else f"RLIMIT_NOFILE is {most} here, which no process may raise"


def many(who, box):
    """Connections at once, and one after another at a rate; the memory of the gateway while they are open."""
    fit, why = held_flows()
    churn = who.run(*box.words("churn", "tls", ADDRESS, PORTS["tls"], "bench.example", 5 * RATE, RATE)).split()
    p = who.start(*box.words("hold", "tls", NAMES["many.example"], PORTS["tls"], "many.example", fit, RATE), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        held = p.stdout.readline().split()
        kib = box.private_kib()
        p.stdin.close()
        still = p.stdout.readline().strip()
    finally:
        end(p)
    if not held or not still:
        raise Failed("the program that holds connections open died")
    return {"held": int(held[0]), "failed": int(held[1]), "all_failed": int(churn[1]) + fit - int(still), "seconds": float(held[2]), "first_p50_us": float(held[3]), "still_answer": int(still), "private_kib": kib,
            **({"fewer": why} if why else {}),
            "new": {"of": 5 * RATE, "failed": int(churn[1]), "a_second": round(int(churn[0]) / float(churn[2])), "first_p50_us": float(churn[3])}}


def flood(who, stage, box):
    """A box that opens connections and says nothing. Another box goes on meanwhile; this one has a network again afterwards."""
    with Boxed(who, stage, "bench-net-other") as other:
        probe = ["first", "tls", NAMES["other.example"], PORTS["tls"], "other.example", 50]
        before, pids = [float(x) for x in who.run(*other.words(*probe)).split()], box.gateway()
        p = who.start(*box.words("mute", "93.184.217.0", PORTS["tls"], HALF_OPEN), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            opened = p.stdout.readline().split()
            meanwhile, kib = [float(x) for x in who.run(*other.words(*probe)).split()], box.private_kib()
            p.stdin.close()
            p.wait(60)
        finally:
            end(p)
        begun = time.monotonic()
        while True:
            try:
                who.run(*box.words("first", "tls", ADDRESS, PORTS["tls"], "bench.example", 1), timeout=10)
                break
            except Failed:
                if time.monotonic() - begun > 60:
                    raise Failed("the box has no network any more") from None
        back = time.monotonic() - begun
        return {"opened": int(opened[0]), "private_kib": kib, "other_before": row(before), "other_meanwhile": row(meanwhile), "back_s": round(back, 2),
                "same_processes": box.gateway() == pids}


def making(who, stage, args):
    """What a network adds to making a box."""
    with_it, without = Boxed(who, stage, "bench-net-with"), Boxed(who, stage, "bench-net-without", network=False)
    commands = [[*map(str, b.create(f"{b.name}-{{}}")), "+++", *map(str, b.remove(f"{b.name}-{{}}"))] for b in (with_it, without)]
    a, b = who.spawn(commands, max(100, args.runs // 2), 3)
    return {"with": row(a), "without": row(b), "more_ms": round(quantile([x - y for x, y in zip(a, b)], 0.5) / 1000, 3)}


def network(who, args, stage, peers):
    with ExitStack() as stack:
        stack.enter_context(world(who, stage, args.calm))
        found = {"making": making(who, stage, args)}
        box = stack.enter_context(Boxed(who, stage, "bench-net"))
        found["idle_kib"] = box.private_kib()
        ways, missing = stream_ways(who, stage, peers, box, stack)
        found.update(streams(who, stage, ways, args))
        found["skipped"].update(missing)
        found["first"] = first_bytes(who, ways, ("tls", "http"), args)
        found["many"] = many(who, box)
        found["flood"] = flood(who, stage, box)
        return found


def show(found, title):
    print(f"\nThe way out of a box, {title}; {found['mb']} MB each, {found['rounds']} rounds")
    for what, by in found["streams"].items():
        print(f"  {what:10} " + "   ".join(f"{n} {v['mb_s']} MB/s" + (f" (pale takes {v['pale_takes']} x its time)" if n not in ("pale", "direct") else "") for n, v in by.items()))
    for name, why in found["skipped"].items():
        print(f"  {name}: not run: {why}")
    for kind, by in found["first"].items():
        print(f"  first byte, {kind}: " + ", ".join(f"{n} p50 {by[n]['p50'] / 1000:.3f} ms p99 {by[n]['p99'] / 1000:.3f} ms" for n in ("direct", "relay", "pale")) + f"; {by['more_ms']} ms more")
    m, f = found["many"], found["flood"]
    print(f"  {m['held']} connections at once ({m['failed']} failed), {m['still_answer']} answer afterwards: {m['private_kib']} KiB private" + (f"; {m['fewer']}" if "fewer" in m else ""))
    print(f"  {m['new']['a_second']} new connections a second of {RATE} asked for, {m['new']['failed']} of {m['new']['of']} failed, first byte p50 {m['new']['first_p50_us'] / 1000:.1f} ms")
    print(f"  idle gateway: {found['idle_kib']} KiB private")
    print(f"  a box made: {found['making']['more_ms']} ms more with a network (p50 {found['making']['with']['p50'] / 1000:.2f} and {found['making']['without']['p50'] / 1000:.2f} ms)")
    print(f"  {f['opened']} connections that say nothing: {f['private_kib']} KiB private; a byte of another box p50 {f['other_before']['p50'] / 1000:.3f} ms before, "
          f"{f['other_meanwhile']['p50'] / 1000:.3f} ms meanwhile; served again {f['back_s']} s after their end, by {'the same' if f['same_processes'] else 'OTHER'} processes")
