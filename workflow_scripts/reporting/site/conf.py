"""Configuration of Sphinx for the site; the command `site` passes the name of the scale."""

project = html_title = "Recompose"
copyright = "the Recompose contributors"  # noqa: A001 - the name that Sphinx reads
extensions = ["myst_parser", "sphinx_copybutton"]
exclude_patterns = ["files"]
highlight_language = "text"
myst_heading_anchors = 4
# Papers' notes and tables begin at the level of their place in the page.
suppress_warnings = ["myst.header"]
html_theme = "pydata_sphinx_theme"
html_static_path = ["static"]
html_css_files = ["drawings.css", "site.css"]
html_js_files = ["site.js"]
html_show_sourcelink = html_copy_source = False
html_sidebars = {name: [] for name in ("index", "claims/**", "papers/**")}
html_theme_options = {
    "logo": {"text": "Recompose"},
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "article_header_start": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
