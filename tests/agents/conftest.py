# SPDX-License-Identifier: Apache-2.0
"""Real harnesses, a scripted model, a planted repository, and pale between them."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import model  # noqa: E402
import rigs  # noqa: E402
import vectors  # noqa: E402


@pytest.fixture
def say():
    """say(script): a model that follows it."""
    models = []

    def start(script=()):
        models.append(model.Model(script))
        return models[-1]

    yield start
    for m in models:
        m.close()


@pytest.fixture
def scene(hostdir):
    return vectors.Scene(hostdir)


@pytest.fixture
def rig_for(idle_daemon, pale, scene):
    """rig_for(name): a rig; it and its boxes are gone afterwards."""
    made = []

    def make(name):
        made.append(rigs.Rig(pale, scene, name))
        return made[-1]

    yield make
    for r in made:
        r.end()
