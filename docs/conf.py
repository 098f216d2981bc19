"""The site (`make docs`): the pages here, an API reference made from docstrings, a gallery made from examples."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests"), str(HERE / "site")]

import pages  # noqa: E402
import reference  # noqa: E402

import triscreen  # noqa: E402

project, author, copyright = "triscreen", "the triscreen developers", "the triscreen developers, BSD-3-Clause"
version = release = triscreen.__version__
extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax", "numpydoc",
    "myst_parser", "sphinx_design", "sphinx_copybutton", "sphinx_gallery.gen_gallery",
]  # fmt: skip
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["site", "**/GALLERY_HEADER.rst", "sg_execution_times.rst"]
default_role = "py:obj"
autodoc_typehints = "none"  # the docstrings say it in words
toc_object_entries_show_parents = "hide"
autosummary_generate = False  # by reference.py
numpydoc_show_class_members = False
myst_heading_anchors = 6
myst_enable_extensions = ["colon_fence", "attrs_inline"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 5,
    "doc_module": (),
    "abort_on_example_error": True,
    "copyfile_regex": r"GALLERY_HEADER\.rst",
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")

html_theme = "pydata_sphinx_theme"
html_title = "triscreen"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_extra_path = ["generated/llms.txt"]
html_show_sourcelink = False
html_sidebars = {"index": [], "which-learner": [], "benchmarks": []}
html_theme_options = {
    "logo": {"text": "triscreen"},
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}

pages.write(ROOT, HERE / "generated")
reference.write(HERE / "generated")


def setup(app):
    """Make docstrings and pages fit the site before anybody else sees them."""
    app.connect("autodoc-process-docstring", reference.escaped, priority=100)
    app.connect("source-read", pages.links_inside)
