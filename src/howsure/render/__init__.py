"""Report JSON → text, Markdown, HTML or figure. Renderers do no arithmetic."""
