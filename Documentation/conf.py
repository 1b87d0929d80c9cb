# SPDX-License-Identifier: GPL-2.0
"""How Sphinx builds these pages by themselves (make doc). In a kernel tree, that tree's is used."""

project = "xroce"
html_theme = "alabaster"
html_copy_source = False
# Most examples are commands and drawings.
highlight_language = "none"
