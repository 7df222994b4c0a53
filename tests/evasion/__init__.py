# SPDX-License-Identifier: Apache-2.0
"""Ways around the rules of a box's network: a table, and what tries it."""
