"""The page that evaluates in the browser: what `howsure app` writes, and the part of it that runs
there.
"""
