# SPDX-License-Identifier: Apache-2.0
"""The servers of the fake internet, as one process: `python -m internet.serve names|servers FOLDER`.

Whatever arrives at any address is written to FOLDER/log before anybody answers, a line of JSON each. They listen on every address there is
and know by the local end of a connection who they are.
"""
import contextlib
import json
import os
import pathlib
import selectors
import socket
import ssl
import struct
import sys
import threading
import time
import traceback

from internet import nameserver, places, web
from internet.certificates import Authority

PKTINFO = struct.Struct("16si")
BYTES_RECEIVED = 128  # where struct tcp_info has them


def plain(address):
    return address.removeprefix("::ffff:") if "." in address else address


class Log:
    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def tell(self, kind, **fields):
        os.write(self.fd, json.dumps({"kind": kind, "time": time.time(), **fields}).encode() + b"\n")


class Listeners:
    """Sockets of both families on every address; each has a function that takes what comes."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()

    def open(self, kind, port, take):
        s = socket.socket(socket.AF_INET6, kind)
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == socket.SOCK_DGRAM:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        s.bind(("::", port))
        if kind == socket.SOCK_STREAM:
            s.listen(4096)
        s.setblocking(False)
        self.selector.register(s, selectors.EVENT_READ, take)

    def run(self):
        while True:
            for key, _ in self.selector.select():
                try:
                    key.data(key.fileobj)
                except (BlockingIOError, ConnectionError):
                    pass
                except Exception:  # one question more or less must not end a server
                    traceback.print_exc()


def in_thread(work):
    """A function of a listening socket that gives each connection a thread."""
    def accept(s):
        conn, _ = s.accept()
        conn.setblocking(True)
        conn.settimeout(web.STALL_SECONDS)
        threading.Thread(target=guarded, args=(work, conn), daemon=True).start()
    return accept


def guarded(work, conn):
    with conn, contextlib.suppress(OSError, ValueError, KeyError):
        work(conn)


def whereabouts(conn):
    to, port = conn.getsockname()[:2]
    return {"to": plain(to), "port": port}


def datagram(s):
    """(data, from whom, to which address, what an answer must carry to leave from there)."""
    data, control, _, peer = s.recvmsg(65536, 200)
    info = next(c for c in control if c[:2] == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO))
    address, _ = PKTINFO.unpack(info[2][:PKTINFO.size])
    back = [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, PKTINFO.pack(address, 0))]
    return data, peer, plain(socket.inet_ntop(socket.AF_INET6, address)), back


def number_of(address):
    """Of ours, by the last part of the address; 0: nobody's."""
    for n in (*places.LEGITIMATE, places.EVIL):
        if address in (places.v4(n), places.v6(n)):
            return n
    return 0


# --- names ---

class Names:
    def __init__(self, log):
        self.log = log
        self.server = nameserver.NameServer(log.tell)

    def listen(self, listeners):
        listeners.open(socket.SOCK_DGRAM, 53, self.asked)
        listeners.open(socket.SOCK_STREAM, 53, in_thread(self.stream))

    def asked(self, s):
        data, peer, to, back = datagram(s)
        for seconds, answer in self.server.answer(data, False, to=to, port=53, bytes=len(data)):
            if seconds:
                threading.Timer(seconds, s.sendmsg, ([answer], back, 0, peer)).start()
            else:
                s.sendmsg([answer], back, 0, peer)

    def stream(self, conn):
        where = whereabouts(conn)
        self.log.tell("open", **where)
        with conn.makefile("rb") as f:
            while head := f.read(2):
                data = f.read(struct.unpack(">H", head)[0])
                for seconds, answer in self.server.answer(data, True, bytes=len(data), **where):
                    nameserver.wait(seconds)
                    conn.sendall(struct.pack(">H", len(answer)) + answer)


# --- all others ---

class Servers:
    def __init__(self, log, folder):
        self.log, self.folder = log, folder
        self.authority = Authority(folder / "authority")
        self.canary = (folder / "canary").read_text()
        self.front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.front.minimum_version = ssl.TLSVersion.TLSv1
        self.front.set_ciphers("ALL:@SECLEVEL=0")
        self.front.sni_callback = self.choose

    def choose(self, end, name, _):
        end.asked_for = name
        end.context = self.authority.context(name)

    def listen(self, listeners):
        for ports, work in ((places.HTTP_PORTS, self.http), (places.CARELESS_PORTS, self.careless), (places.TLS_PORTS, self.tls), (places.ECHO_PORTS, web.echo),
                            (places.SSH_PORTS, self.ssh),
                            (places.OTHER_TCP_PORTS, web.take)):
            for port in ports:
                if port != 53:
                    listeners.open(socket.SOCK_STREAM, port, in_thread(self.told(work)))
        for port in places.UDP_PORTS:
            listeners.open(socket.SOCK_DGRAM, port, self.udp)
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.canary)
        self.abstract.listen()
        listeners.selector.register(self.abstract, selectors.EVENT_READ, self.unix)

    def told(self, work):
        """Opens and ends are told, whatever the port, with the bytes that the kernel counted."""
        def serve(conn):
            where = whereabouts(conn)
            self.log.tell("open", **where)
            count = conn.dup()  # TLS takes the other one away
            manner = places.MANNERS.get(number_of(where["to"]))
            try:
                if manner:
                    web.MANNERS[manner](conn)
                elif work in (web.echo, web.take):
                    work(conn, self.log.tell, **where)
                else:
                    work(conn, **where)
            finally:
                with count:
                    info = count.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
                    self.log.tell("end", bytes=struct.unpack_from("Q", info, BYTES_RECEIVED)[0], **where)
        return serve

    def http(self, conn, **where):
        first = conn.recv(300, socket.MSG_PEEK)
        self.log.tell("data", data=first.decode("latin-1"), bytes=len(first), **where)
        web.Site(conn, self.folder / "site", self.log.tell, self.canary, **where)

    def careless(self, conn, **where):
        web.Careless(conn, self.log.tell, where["port"] == places.CARELESS_PORTS[0], **where)

    def unix(self, s):
        s.accept()[0].close()
        self.log.tell("open", to="abstract", port=0)

    def tls(self, conn, **where):
        first = conn.recv(300, socket.MSG_PEEK)
        self.log.tell("data", data=first[:300].decode("latin-1"), bytes=len(first), **where)
        end = self.front.wrap_socket(conn, server_side=True, do_handshake_on_connect=False)
        end.asked_for = None
        try:
            end.do_handshake()
        finally:
            self.log.tell("hello", sni=end.asked_for, **where)
        web.Site(end, self.folder / "site", self.log.tell, self.canary, sni=end.asked_for, **where)

    def ssh(self, conn, **where):
        if (self.folder / "sshd_config").exists():
            conn.settimeout(None)
            web.ssh(conn, self.folder / "sshd_config")
        else:
            conn.sendall(b"SSH-2.0-fake\r\n")
            web.take(conn, self.log.tell, **where)

    def udp(self, s):
        data, _, to, _ = datagram(s)
        self.log.tell("udp", to=to, port=s.getsockname()[1], bytes=len(data), data=data[:300].decode("latin-1"))


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    log = Log(folder / "log")
    listeners = Listeners()
    (Names(log) if kind == "names" else Servers(log, folder)).listen(listeners)
    print("ready", flush=True)
    listeners.run()


if __name__ == "__main__":
    main()
