# SPDX-License-Identifier: MIT
"""python -m flash_ladder: the command fa."""

from flash_ladder._commands import main

main()
