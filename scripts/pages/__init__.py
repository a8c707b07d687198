# SPDX-License-Identifier: MIT
"""The parts of scripts/docs.py. They read results through the modules of plots/."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "plots"))
