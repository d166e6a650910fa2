"""One thin file for each library that meets its users where they are: none is imported before it is asked for."""
