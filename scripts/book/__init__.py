# SPDX-License-Identifier: MIT
"""What the build of the documentation site adds to the pages: code cut from the kernel files, the
difference to the parent, links into the glossary, mathematics, charts for narrow windows.

mkdocs.yml names book/hook.py, which calls the rest.
"""
