# SPDX-License-Identifier: Apache-2.0
"""A case of evasion: what is tried in a box, how it is judged outside, and without which defence it gets through."""
import dataclasses

# Defences that a test build can switch off (src/confine/weaken.h); a case whose twin does not get through proves nothing.
RULES, NAMES, ADDRESS, MATCH = "gate-rules", "gate-names", "gate-address", "gate-match"
ECH, HTTP, STRICT, FORWARD = "gate-ech", "gate-http", "gate-strict", "gate-forward"
NETNS = "netns"


def off(*defences):
    return ",".join(defences)


ANYWHERE = off(RULES, ADDRESS)
BLIND = off(RULES, ADDRESS, MATCH)
GULLIBLE = off(RULES, MATCH, STRICT)  # believes every name, whoever is dialled, and what it cannot read it passes on
JUDGES = {
    "silent": "nothing at all was sent by the host, to anybody",
    "unconnected": "no connection was made, though allowed names may have been looked up",
    "stray": "nothing came where a box with these rules is never seen, or in the name of somebody else",
    "smuggled": "no server saw a request for the canary",
    "open": "the program in the box says that it was not let",
    "counted": "no more than so many names were looked up",
}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    threat: str            # class of threat it belongs to
    command: str           # for sh, with fields
    twin: str              # defences that are off in the twin
    judge: str = "silent"  # how a leak is seen
    audit: bool = True     # the attempt must stand in the box's audit; not where it never came to the gateway, or nothing was refused
    needs: str = ""        # a tool that must be there
    count: int = 0         # for judges that count
