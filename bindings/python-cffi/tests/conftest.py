"""Tests import what stands beside them, and the examples."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(Path(__file__).parent), str(PROJECT / "examples" / "python")]
