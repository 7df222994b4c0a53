# SPDX-License-Identifier: Apache-2.0
"""The mends that the model must miss when they are taken out: words of PALE_WEAKEN, and the steps that a search for each plays."""
import pathlib

FORKS = "create,write,snapshot,restore,fork,rm,stop,kill,gc"
PLACES = "create,write,rm,rename,fork,moved,wiped,copied,kept"
LANDING = "create,write,fork,export,import,snapshot,host,commit,side,merge,apply,discard,kill"

WORDS = {
    "layer-names": FORKS,     # every box's first layer has the same name
    "identity": PLACES,       # a folder that was moved or copied is taken for the box
    "review-start": LANDING,  # the birth of another box counts as that of what it inherited
    "review-guess": LANDING,  # the last commit of today counts as what the box began with
    "review-landed": LANDING,  # what has landed is forgotten
    "review-count": LANDING,  # apply forgets its counts when it tries conflicts again
}
SECONDS = 120


def exists(word, build):
    """Whether that build has the switch."""
    return any(b"\0" + word.encode() + b"\0" in (pathlib.Path(build) / program).read_bytes() for program in ("pale", "pale-keeper") if (pathlib.Path(build) / program).exists())
