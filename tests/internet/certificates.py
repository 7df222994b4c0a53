# SPDX-License-Identifier: Apache-2.0
"""An authority of our own, and a certificate for every name that somebody asks a server for."""
import ipaddress
import pathlib
import re
import ssl
import subprocess
import threading


def openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise RuntimeError(f"openssl {words}: {done.stderr}")


class Authority:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.root, self.key, self.leaf_key = (self.folder / n for n in ("root.pem", "root.key", "leaf.key"))
        self.lock = threading.Lock()
        self.contexts = {}
        self.number = 1

    def make(self):
        for key in (self.key, self.leaf_key):
            openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", key)
        openssl("req", "-x509", "-new", "-key", self.key, "-out", self.root, "-days", 7, "-subj", "/CN=authority of a fake internet",
                "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def certificate(self, name):
        path = self.folder / f"{self.number}.pem"
        self.number += 1
        try:
            kind = f"IP:{ipaddress.ip_address(name)}"
        except ValueError:
            kind = f"DNS:{name}"
        openssl("req", "-x509", "-new", "-CA", self.root, "-CAkey", self.key, "-key", self.leaf_key, "-out", path, "-days", 7, "-subj", "/CN=a server",
                "-addext", f"subjectAltName={kind}", "-addext", "basicConstraints=critical,CA:FALSE")
        return path

    def context(self, name):
        """For a server of that name; whoever asks for none, or for what is none, gets one for nobody."""
        name = name.lower() if name and re.fullmatch(r"[A-Za-z0-9.-]{1,250}", name) else "nobody.test"
        with self.lock:
            if name not in self.contexts:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.minimum_version = ssl.TLSVersion.TLSv1
                context.set_ciphers("ALL:@SECLEVEL=0")
                context.set_alpn_protocols(["http/1.1"])
                context.load_cert_chain(self.certificate(name), self.leaf_key)
                self.contexts[name] = context
            return self.contexts[name]
