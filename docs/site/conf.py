"""Settings of the documentation site for Sphinx; `docs/build_site.py` lays out the sources and calls it."""

import gc
import re
from importlib.metadata import version as installed_version

from docutils import nodes
from sphinx import addnodes

gc.set_threshold(100_000, 50, 100)  # pages are trees that stay: searching them for garbage takes a fifth of the time

project = "dryfit"
author = "the dryfit authors"
copyright = "the dryfit authors"  # noqa: A001  Sphinx's name
version = release = installed_version("dryfit")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["README.md", "site"]

# Markdown ------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # excerpts of files of other tools are shown as JSON and ini
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Docstrings ------------------------------------------------------------

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_maximum_signature_line_length = 80
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# Look ------------------------------------------------------------

smartquotes = False  # it makes a dash of the -- of options
html_theme = "furo"
html_title = "dryfit"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
pygments_style = "github-light"
pygments_dark_style = "github-dark"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f6f4a", "color-brand-content": "#1f6f4a"},
    "dark_css_variables": {"color-brand-primary": "#7ddba8", "color-brand-content": "#7ddba8"},
}

_CODE = re.compile(r"(`[^`]+`)")
_MARKUP = re.compile(r"([*|\\])|(?<=\w)_(?=\W|$)")


def markdown_to_sphinx(lines: list[str]) -> None:
    """Rewrite a docstring's Markdown for Sphinx, in place: backticks are code, and other marks stand for themselves."""
    for index, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...")):
            continue
        pieces = _CODE.split(line)
        pieces[1::2] = [f"`{code}`" for code in pieces[1::2]]
        pieces[::2] = [_MARKUP.sub(r"\\\g<0>", text) for text in pieces[::2]]
        lines[index] = "".join(pieces)


def one_sentence(app, what, name, obj, options, lines) -> None:  # noqa: ANN001, ARG001  called by Sphinx
    """Rewrite the docstring of a property for napoleon, which takes words before a colon for a type."""
    if what in {"property", "attribute"} and lines:
        lines[0] = f": {lines[0]}"


_OBJECT = re.compile(r"<(?:class '(?:\w+\.)*(\w+)'|function (\w+))>|\bNOTHING\b")


def readable_defaults(app, what, name, obj, options, signature, returns):  # noqa: ANN001, ANN201, ARG001
    """Write defaults as Python would be written: otherwise Sphinx cannot read the signature, and shows it raw."""
    return (signature and _OBJECT.sub(lambda found: found[1] or found[2] or "...", signature)), returns


def titles_only(toc):  # noqa: ANN001, ANN201  docutils has no types
    """A copy of a page's table of contents without the headings below its title, but with the pages below it."""
    kept = toc.deepcopy()
    for item in list(kept.findall(nodes.list_item)):
        if item.parent is not kept and not any(item.findall(addnodes.toctree)):
            item.parent.remove(item)
    return kept


def navigate_by_titles(app, pagename, templatename, context, doctree):  # noqa: ANN001, ANN201, ARG001  called by Sphinx
    """Let the navigation beside a page be made of titles.

    Furo asks for titles only; Sphinx copies the headings of all pages for each page and then drops them, which takes a
    third of the time of the build.
    """
    full_toctree, environment = context["toctree"], app.env
    if not hasattr(app, "tables_of_titles"):
        app.tables_of_titles = {page: titles_only(toc) for page, toc in environment.tocs.items()}

    def toctree(**options):  # noqa: ANN003, ANN202  Sphinx's options
        complete, environment.tocs = environment.tocs, app.tables_of_titles
        try:
            return full_toctree(**options)
        finally:
            environment.tocs = complete

    context["toctree"] = toctree


def keep_words_whole(app, pagename, templatename, context, doctree) -> None:  # noqa: ANN001, ARG001  called by Sphinx
    """Mark the short words of inline code, which a line does not break at their hyphens: `--every-layer`."""
    if "body" in context:
        context["body"] = re.sub(r'<span class="pre">(?=[^<]{1,26}<)', '<span class="pre short">', context["body"])


def setup(app):  # noqa: ANN001, ANN201  called by Sphinx
    """Connect what is ours: before napoleon, which reads the sections of the docstring, and before Furo."""
    app.connect("autodoc-process-docstring", lambda *event: markdown_to_sphinx(event[-1]), priority=100)
    app.connect("autodoc-process-docstring", one_sentence, priority=200)
    app.connect("autodoc-process-signature", readable_defaults)
    app.connect("html-page-context", navigate_by_titles, priority=100)
    app.connect("html-page-context", keep_words_whole)
