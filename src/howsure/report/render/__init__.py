"""Renderers: a report, comparison, monitor or plan as text, Markdown, HTML page or figure."""
