"""The website operator in four releases."""
