"""Types, interfaces and errors that everything else stands on."""
