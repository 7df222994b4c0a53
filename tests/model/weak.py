# SPDX-License-Identifier: Apache-2.0
"""The mends that the model must miss when they are taken out: words of PALE_WEAKEN, and the steps that a search for each plays."""
import pathlib

FORKS = "create,write,snapshot,restore,fork,rm,stop,kill,gc"
PLACES = "create,write,rm,rename,fork,moved,wiped,copied,kept"
LANDING = "create,write,fork,export,import,snapshot,host,commit,side,merge,apply,discard,kill"

# Of the others a model of files says nothing: layers of somebody else's making, a keeper that serves another box, a list that was lost, a
# second state folder, what git ignores, git's index in the box, and what takes milliseconds or files of one size
# (review-tick, review-dirty). review-type and review-link were not found within the time.
WORDS = {
    "layer-names": FORKS,      # every box's first layer has the same name
    "identity": PLACES,        # a folder that was moved or copied is taken for the box
    "minted-ids": PLACES,      # a box's id is made of its path
    "review-start": LANDING,   # every layer is as old as the open one
    "review-guess": LANDING,   # what is not known to be what the box began with is taken for it
    "review-landed": LANDING,  # what has landed is forgotten
}
SECONDS = 120


def exists(word, build):
    """Whether that build has the switch."""
    return any(b"\0" + word.encode() + b"\0" in (pathlib.Path(build) / program).read_bytes() for program in ("pale", "pale-keeper") if (pathlib.Path(build) / program).exists())
