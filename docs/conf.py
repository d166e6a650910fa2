"""Sphinx: the Markdown of this folder, the docstrings of the package, and nothing that is written
twice.
"""

from docutils import nodes
from latex2mathml.converter import convert

from docs.adapters import LACKING
from howsure._core.version import __version__

project, author, copyright = (
    "howsure",
    "The howsure maintainers",
    "The howsure maintainers, Apache-2.0",
)
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
html_theme = "furo"
html_title = f"howsure {release}"
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["run.js", "live.js"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "attrs_inline", "dollarmath"]
myst_heading_anchors = 4
default_role = "code"
autodoc_mock_imports = LACKING
autodoc_member_order = "bysource"
autodoc_typehints = "none"
add_module_names = False


# Formulas become MathML when the site is built: browsers show it themselves, and nothing is loaded
# from elsewhere.
def _inline(self, node):
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def _block(self, node):
    self.body.append(f"<div>{convert(node.astext(), display='block')}</div>")
    raise nodes.SkipNode


def _said_nothing(*given):
    """A field of a named tuple whose only words are Python's own says nothing; requests are
    scikit-learn's.
    """
    if given[2].startswith("set_") and given[2].endswith("_request"):
        return True
    return (
        True
        if (getattr(given[3], "__doc__", None) or "").startswith("Alias for field number")
        else None
    )


def setup(app):
    app.connect("autodoc-skip-member", _said_nothing)
    app.add_html_math_renderer(
        "mathml", inline_renderers=(_inline, None), block_renderers=(_block, None)
    )


html_math_renderer = "mathml"
