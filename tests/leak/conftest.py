# SPDX-License-Identifier: Apache-2.0
"""Every test here belongs to a claim of the threat model by its name: test_c07_… to C7."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
